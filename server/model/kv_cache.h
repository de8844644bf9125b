// The draft KV of all sequences: one slot each, contiguous, growing by doubling.
//
// A pass writes rows behind a slot's length and counts them only when all of it went well, so a
// failed pass needs no undoing. Engine thread only. Growing may throw.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "server/engine/draft_model.h"

namespace aerie {

struct KvShape {
  int64_t layers = 1;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;     // of keys
  int64_t value_dim = 0;    // of values
  int64_t hidden_size = 0;  // of the draft hidden state kept beside it
  at::ScalarType dtype = at::kFloat;
};

class KvSlot {
 public:
  explicit KvSlot(const KvShape& shape) : shape_(shape) {}

  // Rows that count.
  int64_t length() const { return length_; }

  // Makes room for `rows` rows in all; those that count stay.
  void Reserve(int64_t rows);
  // Writes rows [first, first + n) of a layer: `keys` [n, kv_heads, head_dim] and `values` [n,
  // kv_heads, value_dim]. Room must have been made.
  void Write(int64_t layer, int64_t first, const at::Tensor& keys, const at::Tensor& values);
  // The first `rows` rows of a layer, counted or written: [kv_heads, rows, head_dim or value_dim],
  // views.
  at::Tensor Keys(int64_t layer, int64_t rows) const {
    return keys_.select(0, layer).narrow(1, 0, rows);
  }
  at::Tensor Values(int64_t layer, int64_t rows) const {
    return values_.select(0, layer).narrow(1, 0, rows);
  }

  // From now on `length` rows count. `output`: the draft hidden state of the last one,
  // [hidden_size]; undefined when it was not computed.
  void Commit(int64_t length, const at::Tensor& output);
  void Truncate(int64_t length);

  // Whether the draft hidden state of the last row is known; a draft row starts from it.
  bool has_output() const { return output_row_ >= 0 && output_row_ == length_ - 1; }
  // [1, hidden_size].
  const at::Tensor& output() const { return output_; }

 private:
  KvShape shape_;
  at::Tensor keys_, values_;  // [layers, kv_heads, capacity, width]; undefined without a row
  int64_t length_ = 0;
  at::Tensor output_;
  int64_t output_row_ = -1;
};

class KvCache {
 public:
  KvCache(const KvShape& shape, int32_t max_slots) : shape_(shape), max_slots_(max_slots) {}

  // RESOURCE_EXHAUSTED at max_slots.
  absl::StatusOr<SlotId> Open();
  void Close(SlotId slot);
  // `slot` must be open. Valid until it is closed.
  KvSlot& at(SlotId slot);
  const KvSlot& at(SlotId slot) const;

 private:
  KvShape shape_;
  int32_t max_slots_;
  std::vector<std::unique_ptr<KvSlot>> slots_;  // null: free
  std::vector<SlotId> free_;
};

}  // namespace aerie
