// What a match says to people and to programs.
#pragma once

#include <string>

#include "server/recording/match.h"

namespace aerie {

// A table, then what contradicts what.
std::string MatchAsText(const Recording& a, const Recording& b, const MatchResult& result);
// One JSON object, with a line break at its end.
std::string MatchAsJson(const Recording& a, const Recording& b, const MatchResult& result);

// 0: every tensor of A was judged and nothing contradicts a claim. 3: a claim is contradicted, or
// states stand beside the wrong tokens. 4: else, some tensor is unsure.
int MatchExitCode(const Recording& a, const Recording& b, const MatchResult& result);

}  // namespace aerie
