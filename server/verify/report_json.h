// The result for machines.
#pragma once

#include <string>

#include "server/verify/verify_result.h"

namespace aerie {

// One JSON object: verdict, reason, exit_code, best{tensors, shift, ...}, declared{...}, margin,
// rows, p_value, candidates[], what_if[], labels[], equivalent[], advice[], limits[], pruned{}, ...
// `declared` is the reading that the others were compared with, or null; all are in `readings`.
// Numbers that do not exist are null.
std::string VerifyResultAsJson(const VerifyResult& result);

}  // namespace aerie
