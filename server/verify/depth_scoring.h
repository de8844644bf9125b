// Scores a candidate along chains of drafts: behind many rows of a sequence a chain begins that is
// fed the true tokens.
//
// One such chain tells both numbers that matter. Fed its own tokens instead, a drafter sees the
// same until its first miss, and what comes behind a miss is thrown away: a chain of own tokens is
// right down to a depth exactly when the true one hits at every depth so far.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/draft_model.h"
#include "server/verify/candidate.h"
#include "server/verify/capture_set.h"
#include "server/verify/row_scores.h"
#include "server/verify/verify_result.h"

namespace aerie {

// Where chains begin: behind these rows of one sequence, ascending.
struct ChainStarts {
  int32_t sequence = 0;
  std::vector<int64_t> rows;
};

struct ChainPlan {
  int32_t depth = 0;  // >= 1
  std::vector<ChainStarts> starts;

  int64_t size() const;
  // As a plan of as many rows, for paired comparisons.
  RowPlan AsRowPlan() const;
};

// About `max_starts` of the rows of `plan`, evenly spaced, from which `depth` tokens follow.
ChainPlan PlanChains(const CaptureSet& captures, const RowPlan& plan, int32_t depth,
                     int64_t max_starts);

// [depth][start], in the order of the plan.
struct ChainScores {
  std::vector<RowScores> depths;

  DepthScores Summary() const;
  // Of each chain the mean log-likelihood over its depths; minus infinity when all its tokens are
  // outside the draft vocabulary.
  std::vector<float> MeanLogLikelihoods() const;
};

// Thread-compatible. `model` and `captures` must outlive it.
class ChainScorer {
 public:
  ChainScorer(DraftModel& model, const CaptureSet& captures, int64_t rows_per_pass)
      : model_(model), captures_(captures), rows_per_pass_(rows_per_pass) {}

  // INTERNAL or RESOURCE_EXHAUSTED as the model's Step.
  absl::StatusOr<ChainScores> Score(const Candidate& candidate, const ChainPlan& plan);

 private:
  DraftModel& model_;
  const CaptureSet& captures_;
  const int64_t rows_per_pass_;
};

}  // namespace aerie
