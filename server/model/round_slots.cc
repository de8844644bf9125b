#include "server/model/round_slots.h"

#include <algorithm>

#include "common/check.h"

namespace aerie {

bool RoundSlot::has_state(int32_t node) const {
  if (node == kRoot) return root_at_ >= 0;
  return node >= 0 && node < draft_rows() && nodes_[node].state_at >= 0;
}

const std::byte* RoundSlot::state(int32_t node) const {
  AERIE_CHECK(has_state(node)) << "node " << node << " of " << draft_rows();
  return states_.data() + (node == kRoot ? root_at_ : nodes_[node].state_at);
}

void RoundSlot::AppendPath(int32_t node, std::vector<int32_t>& path) const {
  const size_t first = path.size();
  for (; node != kRoot; node = nodes_[node].parent) path.push_back(node);
  std::reverse(path.begin() + static_cast<std::ptrdiff_t>(first), path.end());
}

const RoundSlot& RoundSlots::at(SlotId slot) const {
  static const RoundSlot* const empty = new RoundSlot();
  AERIE_CHECK(slot >= 0) << "slot " << slot;
  return static_cast<size_t>(slot) < slots_.size() ? slots_[slot] : *empty;
}

void RoundSlots::Release(SlotId slot) {
  AERIE_CHECK(slot >= 0) << "slot " << slot;
  if (static_cast<size_t>(slot) < slots_.size()) slots_[slot] = RoundSlot();
}

void RoundSlots::Reserve(SlotId slot, int64_t rows) {
  if (static_cast<size_t>(slot) >= slots_.size()) slots_.resize(slot + 1);
  RoundSlot& own = slots_[slot];
  const auto grow = [](auto& vector, size_t more) {
    const size_t wanted = vector.size() + more;
    if (wanted > vector.capacity()) vector.reserve(std::max(wanted, 2 * vector.capacity()));
  };
  grow(own.nodes_, rows);
  grow(own.states_, rows * state_bytes_);
}

void RoundSlots::BeginAnew(SlotId slot, const void* state) {
  RoundSlot& own = slots_[slot];
  own.nodes_.clear();
  own.states_.clear();
  own.root_at_ = Keep(own, state);
}

void RoundSlots::Append(SlotId slot, int32_t parent, const void* state) {
  RoundSlot& own = slots_[slot];
  own.nodes_.push_back({parent, own.depth(parent) + 1, Keep(own, state)});
}

int64_t RoundSlots::Keep(RoundSlot& slot, const void* state) {
  if (state == nullptr) return -1;
  const auto* const bytes = static_cast<const std::byte*>(state);
  const auto at = static_cast<int64_t>(slot.states_.size());
  slot.states_.insert(slot.states_.end(), bytes, bytes + state_bytes_);
  return at;
}

}  // namespace aerie
