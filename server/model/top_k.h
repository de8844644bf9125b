// From the scores of one row to its best tokens. Plain loops: this is the specification.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "server/engine/draft_model.h"

namespace aerie {

// The k best of `logits` (by draft id), best first, equal scores lower id first, with their
// log-probabilities over the row; `draft_to_target` gives their target ids. 1 <= k <=
// logits.size(). nullopt when any logit is NaN or infinite: no token may come out of such a row.
std::optional<std::vector<ScoredToken>> TopK(absl::Span<const float> logits, int32_t k,
                                             absl::Span<const int32_t> draft_to_target);

}  // namespace aerie
