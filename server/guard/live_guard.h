// The guard at work in a server: sees the rows that the engine takes, and says aloud what changes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "common/wiring_report.h"
#include "server/engine/row_observer.h"
#include "server/guard/capture_sizes.h"
#include "server/guard/guard_profile.h"
#include "server/guard/wiring_guard.h"
#include "server/guard/wiring_observer.h"

namespace aerie {

struct LiveGuardOptions {
  std::optional<GuardProfile> profile;
  int32_t captures = 0;                // of the drafter's wiring
  WiringObserver* observer = nullptr;  // may be null
  // The worst state of all sources has changed. Any thread, one call at a time; must not block and
  // must not call the guard. May be empty.
  std::function<void(WiringState)> on_worst;
};

class LiveGuard final : public RowObserver {
 public:
  explicit LiveGuard(LiveGuardOptions options);

  // Engine thread only.
  std::unique_ptr<RowWatch> Watch(const WatchedRows& rows, absl::Time now) override;
  // One order of captures of a replay after the other.
  std::optional<Trial> TakeTrial() override;
  void OnTrial(absl::Span<const float> log_probs, absl::Time now) override;

  // Any thread. Call it now and then: sources that have been gone for long are forgotten.
  void Tick(absl::Time now) { guard_.Forget(now); }
  // Any thread.
  std::vector<WiringReport> Reports() const { return guard_.Reports(); }
  WiringState WorstState() const { return guard_.WorstState(); }

 private:
  class SessionRows;
  void NoteSizes(int64_t base_length, const HiddenRows& rows);

  WiringObserver* const observer_;
  CaptureSizes sizes_;
  WiringGuard guard_;
  std::optional<ReplayRequest> replay_;  // under way
  ReplayScores scores_;                  // of it, as far as they are there
};

}  // namespace aerie
