// How drafts fare against what the recording promised, of one source.
//
// It never says "wrong". A head that keeps 40 of 100 drafts on the texts of its recording keeps 2
// on texts in another language, through a perfect wiring; and with tokens that lag by one the
// log-likelihood of committed tokens *rises*, as it is the easier prediction. A gap is shown, and
// is a reason to look closer.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/wiring_report.h"
#include "server/guard/guard_profile.h"

namespace aerie {

// Engine thread only.
class DraftingEvidence {
 public:
  explicit DraftingEvidence(const DraftingExpectation& expectation);

  // Log-probabilities of committed tokens under the drafter; minus infinity: outside its
  // vocabulary. `hits`: of these tokens, how many were the drafter's first choice.
  void AddScores(absl::Span<const float> log_probs, int64_t hits);
  // A proposal of `proposed` levels of which the target kept `accepted`.
  void AddJudgement(int32_t proposed, int32_t accepted);
  // What the worker counted for a proposal of which the server found `accepted` kept.
  void AddWorkerCount(int32_t accepted, int32_t worker_accepted);

  DraftingReport Report() const;

 private:
  // Halves all counts now and then, so that they speak of the recent past.
  void Forget();

  DraftingExpectation expectation_;
  double scored_ = 0, in_vocabulary_ = 0, hits_ = 0, log_likelihood_ = 0;
  std::vector<double> proposed_, kept_;  // [depth]
  double worker_counts_ = 0, worker_differs_ = 0;
};

// True when the worker's counts contradict the server's too often for chance: it verifies other
// drafts than it was given, or counts from another position.
bool WorkerContradicts(const DraftingReport& report);

}  // namespace aerie
