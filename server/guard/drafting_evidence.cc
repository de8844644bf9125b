#include "server/guard/drafting_evidence.h"

#include <cmath>

#include "common/check.h"

namespace aerie {
namespace {

constexpr double kRemembered = 4096;  // proposals, or scored tokens
constexpr double kLeastJudged = 100;
// Below this part of the promised acceptance even three standard errors up.
constexpr double kWellBelow = 0.6;
constexpr double kErrors = 3.0;
constexpr int64_t kLeastWorkerCounts = 64;
constexpr double kMostDiffering = 0.2;

}  // namespace

DraftingEvidence::DraftingEvidence(const DraftingExpectation& expectation)
    : expectation_(expectation) {}

void DraftingEvidence::AddScores(absl::Span<const float> log_probs, int64_t hits) {
  for (const float log_prob : log_probs) {
    scored_ += 1;
    if (!std::isfinite(log_prob)) continue;
    in_vocabulary_ += 1;
    log_likelihood_ += double{log_prob};
  }
  hits_ += static_cast<double>(hits);
  if (scored_ > kRemembered) Forget();
}

void DraftingEvidence::AddJudgement(int32_t proposed, int32_t accepted) {
  AERIE_CHECK(accepted >= 0 && accepted <= proposed) << accepted << " of " << proposed;
  if (proposed_.size() < static_cast<size_t>(proposed)) {
    proposed_.resize(static_cast<size_t>(proposed));
    kept_.resize(static_cast<size_t>(proposed));
  }
  for (int32_t depth = 0; depth < proposed; ++depth) {
    proposed_[static_cast<size_t>(depth)] += 1;
    kept_[static_cast<size_t>(depth)] += depth < accepted ? 1 : 0;
  }
  if (!proposed_.empty() && proposed_[0] > kRemembered) Forget();
}

void DraftingEvidence::AddWorkerCount(int32_t accepted, int32_t worker_accepted) {
  worker_counts_ += 1;
  worker_differs_ += accepted != worker_accepted ? 1 : 0;
}

void DraftingEvidence::Forget() {
  for (double* count :
       {&scored_, &in_vocabulary_, &hits_, &log_likelihood_, &worker_counts_, &worker_differs_}) {
    *count /= 2;
  }
  for (double& count : proposed_) count /= 2;
  for (double& count : kept_) count /= 2;
}

DraftingReport DraftingEvidence::Report() const {
  DraftingReport report{.expected_accuracy = expectation_.accuracy,
                        .expected_log_likelihood = expectation_.log_likelihood,
                        .expected_accept_length = expectation_.AcceptLength(),
                        .expected = expectation_.acceptance};
  if (scored_ > 0) report.accuracy = hits_ / scored_;
  if (in_vocabulary_ > 0) report.log_likelihood = log_likelihood_ / in_vocabulary_;
  report.worker_counts = std::llround(worker_counts_);
  report.worker_differs = std::llround(worker_differs_);
  double length = 1.0;
  for (size_t depth = 0; depth < proposed_.size(); ++depth) {
    const double share = kept_[depth] / proposed_[depth];
    report.acceptance.push_back(share);
    length += share;
  }
  if (proposed_.empty()) return report;
  report.accept_length = length;
  report.judged = std::llround(proposed_[0]);
  if (proposed_[0] < kLeastJudged || expectation_.acceptance.empty()) return report;
  const double expected = expectation_.acceptance[0];
  const double error = std::sqrt(expected * (1.0 - expected) / proposed_[0]);
  report.below_expectation = report.acceptance[0] + kErrors * error < kWellBelow * expected;
  return report;
}

bool WorkerContradicts(const DraftingReport& report) {
  return report.worker_counts >= kLeastWorkerCounts &&
         static_cast<double>(report.worker_differs) >
             kMostDiffering * static_cast<double>(report.worker_counts);
}

}  // namespace aerie
