// The draft hidden states of rounds: one slot each, from the last extend row to the newest draft
// row.
//
// A node is the root, -1, whose state is the output of the last extend row, or a draft row by its
// number in the slot. Nothing changes before a pass has gone well, and then nothing can fail: room
// is made first. Engine thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/engine/draft_model.h"

namespace aerie {

inline constexpr int32_t kRoot = -1;

class RoundSlot {
 public:
  int32_t draft_rows() const { return static_cast<int32_t>(nodes_.size()); }
  // 0 for the root.
  int32_t depth(int32_t node) const { return node == kRoot ? 0 : nodes_.at(node).depth; }
  // Whether draft rows may start from the node.
  bool has_state(int32_t node) const;
  // The draft hidden state of a node that has one.
  const std::byte* state(int32_t node) const;
  // Draft rows on the way from the root to `node`, which comes last; none for the root.
  void AppendPath(int32_t node, std::vector<int32_t>& path) const;

 private:
  friend class RoundSlots;
  struct Node {
    int32_t parent = kRoot, depth = 1;
    int64_t state_at = -1;  // in states_; -1: not kept
  };
  int64_t root_at_ = -1;
  std::vector<Node> nodes_;
  std::vector<std::byte> states_;
};

class RoundSlots {
 public:
  explicit RoundSlots(int64_t state_bytes) : state_bytes_(state_bytes) {}

  // The slot as it is; an empty one where nothing has been kept.
  const RoundSlot& at(SlotId slot) const;
  void Release(SlotId slot);

  // Makes room for `rows` draft rows more, or for a root with 1, and their states; may throw.
  void Reserve(SlotId slot, int64_t rows);
  // After Reserve(). The slot begins anew; `state` is the root's, or null.
  void BeginAnew(SlotId slot, const void* state);
  // After Reserve(). `state` may be null.
  void Append(SlotId slot, int32_t parent, const void* state);

 private:
  int64_t Keep(RoundSlot& slot, const void* state);

  int64_t state_bytes_;
  std::vector<RoundSlot> slots_;
};

}  // namespace aerie
