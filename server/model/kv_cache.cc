#include "server/model/kv_cache.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/check.h"

namespace aerie {
namespace {

constexpr int64_t kFirstCapacity = 64;

// A buffer of `capacity` rows that begins with the first `rows` of `old`.
at::Tensor Grown(const at::Tensor& old, int64_t rows, const KvShape& shape, int64_t width,
                 int64_t capacity) {
  at::Tensor grown =
      at::empty({shape.layers, shape.kv_heads, capacity, width}, at::TensorOptions(shape.dtype));
  if (rows > 0) grown.narrow(2, 0, rows).copy_(old.narrow(2, 0, rows));
  return grown;
}

}  // namespace

void KvSlot::Reserve(int64_t rows) {
  const int64_t capacity = keys_.defined() ? keys_.size(2) : 0;
  if (rows <= capacity) return;
  const int64_t wanted = std::max({rows, 2 * capacity, kFirstCapacity});
  // Both before either is kept: the second may throw.
  at::Tensor keys = Grown(keys_, length_, shape_, shape_.head_dim, wanted);
  at::Tensor values = Grown(values_, length_, shape_, shape_.value_dim, wanted);
  keys_ = std::move(keys);
  values_ = std::move(values);
}

void KvSlot::Write(int64_t layer, int64_t first, const at::Tensor& keys, const at::Tensor& values) {
  AERIE_CHECK(first >= length_) << "rows that count must not be overwritten";
  const int64_t end = first + keys.size(0);
  Keys(layer, end).narrow(1, first, keys.size(0)).copy_(keys.transpose(0, 1));
  Values(layer, end).narrow(1, first, values.size(0)).copy_(values.transpose(0, 1));
}

void KvSlot::Commit(int64_t length, const at::Tensor& output) {
  AERIE_CHECK(length >= length_);
  if (output.defined()) {
    // A copy: a view would keep the outputs of all sequences of the pass alive.
    if (!output_.defined())
      output_ = at::empty({1, shape_.hidden_size}, at::TensorOptions(shape_.dtype));
    output_.select(0, 0).copy_(output);
    output_row_ = length - 1;
  }
  length_ = length;
}

void KvSlot::Truncate(int64_t length) {
  AERIE_CHECK(length >= 0 && length <= length_) << length << " of " << length_;
  length_ = length;
  if (output_row_ >= length) output_row_ = -1;  // another row may come to stand there
}

absl::StatusOr<SlotId> KvCache::Open() {
  if (free_.empty()) {
    if (static_cast<int32_t>(slots_.size()) >= max_slots_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("all ", max_slots_,
                       " slots of draft KV are taken; expected a free one; close a "
                       "session or raise --max-sessions"));
    }
    free_.push_back(static_cast<SlotId>(slots_.size()));
    slots_.emplace_back();
  }
  const SlotId slot = free_.back();
  free_.pop_back();
  slots_[slot] = std::make_unique<KvSlot>(shape_);
  return slot;
}

void KvCache::Close(SlotId slot) {
  at(slot);  // checks
  slots_[slot].reset();
  free_.push_back(slot);
}

KvSlot& KvCache::at(SlotId slot) { return const_cast<KvSlot&>(std::as_const(*this).at(slot)); }

const KvSlot& KvCache::at(SlotId slot) const {
  AERIE_CHECK(slot >= 0 && slot < static_cast<SlotId>(slots_.size()) && slots_[slot] != nullptr)
      << "slot " << slot << " is not open";
  return *slots_[slot];
}

}  // namespace aerie
