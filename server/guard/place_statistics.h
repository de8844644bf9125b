// What the channels of a place look like one by one: what its rows are standardised with.
#pragma once

#include <cstddef>
#include <vector>

#include "server/guard/guard_profile.h"

namespace aerie {

// Sets center, scale and size of `place` from `values`, [rows, channels], at least one row.
void DescribeChannels(const std::vector<float>& values, size_t channels, GuardPlace& place);

}  // namespace aerie
