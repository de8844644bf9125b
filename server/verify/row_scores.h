// What one candidate scored, row by row, and which rows those are.
//
// The rows are the same for all candidates, so that any two can be paired. A row whose token is
// outside the draft vocabulary has minus infinity for every candidate; it counts as a miss and is
// left out of log-likelihoods.
#pragma once

#include <cstdint>
#include <vector>

namespace aerie {

// Rows [first, first + count) of one sequence. Row i has the token of position i + 1 and predicts
// that of position i + 2.
struct RowRange {
  int32_t sequence = 0;
  int64_t first = 0;
  int64_t count = 0;

  friend bool operator==(const RowRange&, const RowRange&) = default;
};

// The rows to be scored; at most one range for each sequence.
struct RowPlan {
  std::vector<RowRange> ranges;

  int64_t rows() const;
};

// In the order of the plan.
struct RowScores {
  std::vector<float> log_likelihood;  // of the token that follows
  std::vector<uint8_t> hit;           // 1: it was the most likely one

  double accuracy() const;
  // Over rows within the draft vocabulary; 0 without any.
  double mean_log_likelihood() const;
  int64_t rows_outside_vocabulary() const;
};

}  // namespace aerie
