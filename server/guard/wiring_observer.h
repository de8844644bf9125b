// What the live guard tells as it goes; server/metrics counts it.
//
// Nothing here names a client: what a worker calls itself is in reports and in the log, and must
// not become a label.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/wiring_report.h"

namespace aerie {

// What came of some sampled rows of one source, weighed with those before them.
enum class VoteOutcome {
  kFits,  // rows are as declared
  kOdd,   // like no recorded capture; left out
  kOff,   // something does not fit
};

// All sources together.
struct WiringSummary {
  std::array<int32_t, 4> sources{};  // how many are in each WiringState
  WiringState worst = WiringState::kUnknown;
  // Of a source in the worst state: where its rows lie, by place. Empty before its first vote.
  std::vector<double> positions;

  friend bool operator==(const WiringSummary&, const WiringSummary&) = default;
};

// Must not block, and must not call the guard. Any thread, one call at a time of each function.
class WiringObserver {
 public:
  virtual ~WiringObserver() = default;
  virtual void OnVote(VoteOutcome outcome) = 0;
  // A source has come into this state.
  virtual void OnState(WiringState state) = 0;
  // Told whenever it may have changed.
  virtual void OnSummary(const WiringSummary& summary) = 0;
  // Root mean square of each capture of incoming rows, over the recent past, in wiring order.
  virtual void OnRowSizes(absl::Span<const double> rms) = 0;
};

}  // namespace aerie
