// From the scores of one row to its best tokens.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "server/engine/draft_model.h"

namespace aerie {

// The k best of `logits` (by draft id), best first, equal scores lower id first, with their
// log-probabilities over the row, and that of the target id `probe`; -1: none. `draft_to_target`
// gives the target ids, ascending. 1 <= k <= logits.size(). A row with any logit that is NaN or
// infinite gives no token.
RowOutput JudgeRow(absl::Span<const float> logits, int32_t k, int32_t probe,
                   absl::Span<const int32_t> draft_to_target);

}  // namespace aerie
