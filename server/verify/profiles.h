// How large the rows of recorded tensors are: the norm profile of a recording.
#pragma once

#include <vector>

#include "server/verify/capture_set.h"
#include "server/verify/verify_result.h"

namespace aerie {

inline constexpr double kProfileQuantiles[] = {0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0};

// Of every tensor that was recorded.
std::vector<TensorProfile> ProfileTensors(const CaptureSet& captures);

}  // namespace aerie
