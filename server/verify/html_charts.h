// The plots of the HTML report, as inline SVG. Colours are classes of the report's style sheet.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/verify/verify_result.h"

namespace aerie {

// One line a candidate: its wiring, its accuracy as a bar, and its log-likelihood less that of the
// reference as a dot with a 95 % interval. `shown`: indices into result.candidates.
std::string CandidateChart(const VerifyResult& result, const std::vector<int32_t>& shown);

// Accuracy and acceptance by draft depth, of reference and best. Empty when neither was scored so.
std::string DepthChart(const VerifyResult& result);

// The size of the rows of each tensor, on a logarithmic axis. Empty without profiles.
std::string NormChart(const VerifyResult& result);

}  // namespace aerie
