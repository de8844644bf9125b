// Who looks at the rows of one drafter while it is served: the live guard, and a recording.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/wiring_report.h"
#include "server/config/options.h"
#include "server/config/serving_gate.h"
#include "server/engine/draft_model.h"
#include "server/engine/row_observers.h"
#include "server/guard/live_guard.h"
#include "server/recording/live_recorder.h"
#include "server/transport/served_drafter.h"

namespace aerie {

class RowWatchers {
 public:
  // As far as `options` want them; `record`: whether its rows are those that --record is for.
  // `observer` and `gate` outlive it. Fails when a recording cannot be begun; one that is there
  // from an earlier run is left alone, and nothing is recorded.
  static absl::StatusOr<std::unique_ptr<RowWatchers>> Start(const Options& options,
                                                            const DrafterSpec& spec, bool record,
                                                            std::optional<GuardProfile> profile,
                                                            WiringObserver* observer,
                                                            ServingGate* gate);

  // The drafter's rows are no reason to be not serving any more.
  ~RowWatchers();

  // For the engine, which it outlives; null: nobody looks.
  RowObserver* row_observer() {
    return guard_ == nullptr && recorder_ == nullptr ? nullptr : &all_;
  }

  // What the service tells of it, until it goes away.
  void AddTo(ServedDrafter* drafter) const;
  // Empty without a guard. Any thread.
  std::vector<WiringReport> Reports() const;

  // Call it now and then; any thread.
  void Tick(absl::Time now);

 private:
  RowWatchers(std::unique_ptr<LiveGuard> guard, std::unique_ptr<LiveRecorder> recorder,
              ServingGate* gate, const void* source);

  ServingGate* const gate_;
  const void* const source_;                      // what the gate knows the drafter by
  const std::unique_ptr<LiveGuard> guard_;        // null: off
  const std::unique_ptr<LiveRecorder> recorder_;  // null: nothing is recorded
  RowObservers all_;
};

}  // namespace aerie
