// Divides a whole number of rows between claimants, max-min fairly in proportion to weights.
//
// The result is whole rows, so a single division cannot be exact. It is off by less than a row, and
// over many turns it is off by nothing: `turn` settles who gets the row that cannot be cut.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace aerie {

struct ShareClaim {
  int64_t least = 0;  // 0..most; all of them together fit into the total
  int64_t most = 0;
  int32_t weight = 1;  // 1..1000
};

// Nobody gets less than its least or more than its most; what one does not take goes to the others.
// The shares add up to the smaller of `total` and all that can be taken.
std::vector<int64_t> DivideFairly(absl::Span<const ShareClaim> claims, int64_t total,
                                  uint64_t turn);

}  // namespace aerie
