// From a finished search to the candidates of a result.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "server/verify/declared.h"
#include "server/verify/search.h"
#include "server/verify/verify_result.h"

namespace aerie {

// Fills candidates (best first), reference, best, declared and pruned. `reference` is an index of
// the search. Returns for each candidate of the result its index in the search.
std::vector<int32_t> ListCandidates(const CandidateSearch& search, int32_t reference,
                                    const CaptureSet& captures, absl::Span<const Reading> readings,
                                    const StatisticsOptions& statistics, VerifyResult& result);

}  // namespace aerie
