// How many rows somebody may bring by and by: a token bucket.
//
// What one would get wrong: a call is taken whole as soon as a single row's worth is there, and
// what it brings beyond that is owed. So a call of more rows than the burst is possible, and
// whoever sends many short calls cannot keep its own long ones out. Over time the rate holds; at
// once there are at most the burst and what one call brings.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace aerie {

// Reads no clock. Whoever shares it locks it.
class RowBucket {
 public:
  // Full at first. Both >= 1.
  RowBucket(int64_t rows_per_second, int64_t burst)
      : rate_(rows_per_second), depth_(TimeOf(burst)) {}

  // Zero: they are taken. Otherwise nothing is, and so long it takes until some may be.
  absl::Duration Take(int64_t rows, absl::Time now);
  // Whether it is as it was at first, as far as anyone can tell.
  bool IsFull(absl::Time now) const { return full_ <= now; }

 private:
  absl::Duration TimeOf(int64_t rows) const { return absl::Seconds(rows) / rate_; }

  const int64_t rate_;
  const absl::Duration depth_;                // from empty to full
  absl::Time full_ = absl::InfinitePast();    // when it will be, if nothing is taken
  absl::Time latest_ = absl::InfinitePast();  // that it was told
};

}  // namespace aerie
