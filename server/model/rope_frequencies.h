// The angle that each pair of channels turns by from one position to the next.
#pragma once

#include <cstdint>
#include <vector>

#include "server/checkpoint/rope_spec.h"

namespace aerie {

// rope.dims / 2 of them, in radians. `length` matters to kDynamic alone: the rows of the sequence.
std::vector<double> RopeFrequencies(const RopeSpec& rope, int64_t length);

}  // namespace aerie
