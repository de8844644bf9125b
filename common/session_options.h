// How a session is to be drafted for, and what it begins with: what a worker asks of OpenSession.
//
// Zero and empty stand for "not asked for" everywhere. So temperature 0 is greedy here, while on
// the wire greedy is a message without `sampling`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace aerie {

// A dynamic draft tree: at each of `depth` levels the top_k most likely nodes of the level are
// expanded by top_k children each, and of all of them the total_tokens most likely are proposed.
// depth = 1 .. , top_k = 2 .. , depth <= total_tokens <= top_k + (depth - 1) * top_k * top_k; at
// temperature > 0, where nothing may be dropped after it was drawn, <= depth * top_k.
struct TreeShape {
  int32_t depth = 0;
  int32_t top_k = 0;
  int32_t total_tokens = 0;
  friend bool operator==(const TreeShape&, const TreeShape&) = default;
};

// What comes back of the distributions that drafts were drawn from.
enum class ProposalProbs {
  kNone,
  kChosen,  // of each token its own probability
  kTopM,    // of each node that has children the whole distribution, which has top_m entries
};

// Forms of the tree that come with it, for verifiers that take these.
struct TreeExtras {
  bool ancestor_mask = false;  // DraftTree::AncestorMask()
  bool links = false;          // DraftTree::Links()
  friend bool operator==(const TreeExtras&, const TreeExtras&) = default;
};

// The longest name of a client.
inline constexpr size_t kMaxClientBytes = 64;

struct SessionOptions {
  int32_t max_k = 0;              // 0: the server's, which is also the most that is given
  std::optional<TreeShape> tree;  // unset: a chain
  // 0: the most likely tokens. Above: tokens are drawn from q = softmax(logits / temperature) over
  // the top_m most likely, renormalised.
  float temperature = 0.0f;
  int32_t top_m = 0;  // 0: the server's default of 64, or the whole draft vocabulary if smaller
  uint64_t seed = 0;  // equal seeds, rows and calls give equal draws, whatever else is batched
  ProposalProbs probs = ProposalProbs::kNone;  // other than kNone only at temperature > 0
  TreeExtras extras;  // the engine only hands them on, from the session to each of its results
  bool adaptive_k = false;  // each call's k is a limit; the server chooses at most that
  // The rows before it are never sent: the target had them in a cache of its own. They count for
  // positions, and drafts are made without them.
  int64_t start = 0;
  // Begins with the first fork_length rows of this session, sharing their pages. Empty: fresh.
  std::string fork_of;
  int64_t fork_length = 0;
  std::string client;              // whose quota and share; empty: the nameless client's
  bool acceptance_detail = false;  // the acceptance record lists its steps one by one
  std::string traceparent;  // whose trace the session belongs to (trace_context.h); empty: none's

  // INVALID_ARGUMENT, reason OPTIONS_INVALID, when the options contradict each other, whatever
  // server they meet. The message names fields as the wire does.
  absl::Status Validate() const;

  friend bool operator==(const SessionOptions&, const SessionOptions&) = default;
};

}  // namespace aerie
