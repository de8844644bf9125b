// Scores candidates at draft depth 1: each row is fed the true token and asked for the next one.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "server/engine/draft_model.h"
#include "server/verify/candidate.h"
#include "server/verify/capture_set.h"
#include "server/verify/row_scores.h"

namespace aerie {

// What a row scores whose scores come out as NaN or infinite: as bad as a row can be.
inline constexpr float kNonFiniteLogLikelihood = -50.0f;

// The rows that a recording is scored on: those that predict generated tokens, where the recording
// says which are; else all but the first, before which a shifted candidate has no state. At most
// `max_rows`, spread evenly over as many sequences as give at least `min_per_sequence` each.
RowPlan PlanRows(const CaptureSet& captures, int64_t max_rows, int64_t min_per_sequence);

// About `rows` of these rows, the first ones of each range, for scoring many candidates roughly.
// Ranges that would get fewer than `min_per_sequence` are left with none, since the rows in front
// of them have to be run as well; but some are kept for statistics. More rows include the fewer
// ones.
RowPlan CoarsePlan(const RowPlan& plan, int64_t rows, int64_t min_per_sequence);

// Thread-compatible. `model` and `captures` must outlive it.
class RowScorer {
 public:
  // A pass of the model takes at most `rows_per_pass` rows, at least 1.
  RowScorer(DraftModel& model, const CaptureSet& captures, int64_t rows_per_pass)
      : model_(model), captures_(captures), rows_per_pass_(rows_per_pass) {}

  // In the order of `plan`. INTERNAL or RESOURCE_EXHAUSTED as the model's Step.
  absl::StatusOr<RowScores> Score(const Candidate& candidate, const RowPlan& plan);

 private:
  DraftModel& model_;
  const CaptureSet& captures_;
  const int64_t rows_per_pass_;
};

// The aux hidden states that `candidate` gives to rows [first, first + count) of a sequence:
// [count, tensors x hidden size], float32.
std::vector<float> AssembleRows(const CaptureSet& captures, const CaptureSequence& sequence,
                                const Candidate& candidate, int64_t first, int64_t count);

}  // namespace aerie
