#include "server/verify/row_scores.h"

#include <cmath>
#include <numeric>

namespace aerie {

int64_t RowPlan::rows() const {
  int64_t rows = 0;
  for (const RowRange& range : ranges) rows += range.count;
  return rows;
}

double RowScores::accuracy() const {
  if (hit.empty()) return 0.0;
  return std::accumulate(hit.begin(), hit.end(), 0.0) / static_cast<double>(hit.size());
}

double RowScores::mean_log_likelihood() const {
  double sum = 0.0;
  int64_t rows = 0;
  for (const float value : log_likelihood) {
    if (std::isinf(value)) continue;
    sum += value;
    ++rows;
  }
  return rows == 0 ? 0.0 : sum / static_cast<double>(rows);
}

int64_t RowScores::rows_outside_vocabulary() const {
  int64_t rows = 0;
  for (const float value : log_likelihood) rows += std::isinf(value) ? 1 : 0;
  return rows;
}

}  // namespace aerie
