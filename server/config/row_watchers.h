// Who looks at rows while the server runs: the live guard, and a recording.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/config/options.h"
#include "server/config/serving_gate.h"
#include "server/engine/draft_model.h"
#include "server/engine/row_observers.h"
#include "server/guard/live_guard.h"
#include "server/recording/live_recorder.h"
#include "server/transport/admin_service.h"
#include "server/transport/service_backend.h"

namespace aerie {

class RowWatchers {
 public:
  // As far as `options` want them. `observer` and `gate` outlive it. Fails when a recording cannot
  // be begun; one that is there from an earlier run is left alone, and nothing is recorded.
  static absl::StatusOr<std::unique_ptr<RowWatchers>> Start(const Options& options,
                                                            const DrafterSpec& spec,
                                                            std::optional<GuardProfile> profile,
                                                            WiringObserver* observer,
                                                            ServingGate* gate);

  // For the engine, which it outlives; null: nobody looks.
  RowObserver* row_observer() {
    return guard_ == nullptr && recorder_ == nullptr ? nullptr : &all_;
  }

  // What the services tell of it, until it goes away.
  void AddTo(ServiceBackend* backend) const;
  void AddTo(AdminBackend* backend) const;

  // Call it now and then; any thread.
  void Tick(absl::Time now);

 private:
  RowWatchers(std::unique_ptr<LiveGuard> guard, std::unique_ptr<LiveRecorder> recorder);

  const std::unique_ptr<LiveGuard> guard_;        // null: off
  const std::unique_ptr<LiveRecorder> recorder_;  // null: nothing is recorded
  RowObservers all_;
};

}  // namespace aerie
