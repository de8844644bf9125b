// Latency histogram of fixed relative precision: every quantile is right to three digits over the
// whole range.
//
// Buckets are linear within a power of two, so their count does not depend on what is recorded and
// merging is exact. Quantiles are the upper end of their bucket, capped at the largest value seen:
// they never flatter. No HDR histogram library for C or C++ is packaged for Debian; the buckets are
// the same, so logs go over to its tools (hdr_log.h).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace aerie::loadtest {

// Not thread-safe: one per worker, merged at the end.
class Histogram {
 public:
  // Below zero counts as zero.
  void Record(absl::Duration value);
  void Merge(const Histogram& other);

  int64_t count() const { return count_; }
  absl::Duration min() const;
  absl::Duration max() const;
  absl::Duration Mean() const;
  absl::Duration StandardDeviation() const;
  // The smallest bucket end that at least `quantile` (0..1) of the values do not exceed. Zero when
  // empty.
  absl::Duration Quantile(double quantile) const;
  // By bucket, up to the highest in use: those of an HdrHistogram with 3 digits over nanoseconds.
  const std::vector<int64_t>& buckets() const { return buckets_; }

 private:
  std::vector<int64_t> buckets_;  // grown to the highest index in use
  int64_t count_ = 0;
  int64_t min_ = 0, max_ = 0;         // nanoseconds
  double sum_ = 0, sum_squares_ = 0;  // nanoseconds
};

}  // namespace aerie::loadtest
