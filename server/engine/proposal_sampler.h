// How drafts are drawn at temperature > 0, and from which q.
//
// The q that a worker is told must be the very q that its tokens were drawn from, or its rejection
// sampling no longer keeps the target's distribution. So there are two steps: q is made once, in
// the floats that go on the wire, and the draw knows nothing but these floats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/engine/draft_model.h"

namespace aerie {

// softmax(log_prob / temperature) over the entries alone, in their order. temperature > 0; however
// small it is, the result is finite and sums to 1. A probability too small for a float is 0, and
// its token will not be drawn. `top` has a finite log-probability, or no entry.
std::vector<float> ProposalProbabilities(absl::Span<const ScoredToken> top, float temperature);

// Where in a session's randomness a draw stands: the children of one node of one proposal.
struct DrawKey {
  uint64_t seed = 0;     // of the session
  int64_t position = 0;  // of the root: no two proposals that build on each other share it
  int32_t node = 0;      // the parent's number in the tree; 0: the root
};

// Indices of `count` distinct entries, or of all with a probability above 0 when these are fewer:
// one after the other, each from what is left of `probs`, renormalised. Equal keys and
// probabilities give equal draws, and a larger count only adds to a smaller one's draws. `probs`
// need not sum to 1; no entry is negative or NaN.
std::vector<size_t> DrawWithoutReplacement(absl::Span<const float> probs, size_t count,
                                           DrawKey key);

}  // namespace aerie
