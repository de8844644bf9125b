// The result for people, at a terminal.
#pragma once

#include <string>

#include "server/verify/verify_result.h"

namespace aerie {

std::string VerifyResultAsTable(const VerifyResult& result);

}  // namespace aerie
