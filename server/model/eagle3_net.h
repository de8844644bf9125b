// The equations of a one-layer EAGLE-3 head: weights and arithmetic, no sequence bookkeeping.
//
//   h = W_fc aux                          extend rows; draft rows bring their h
//   x = [norm_e(embedding) ; norm_h(h)]   the embedding first, both normed
//   y = h + W_o attention(W_qkv x)        the residual is the un-normed h
//   z = y + mlp(norm_p(y))                z is what a draft row to come is fed
//   logits = W_lm norm_f(z)               over the draft vocabulary
//
// The keys and values of a row follow from h and the embedding alone. So rows of which nobody wants
// the output, nearly all of a prompt, stop there. Throws what LibTorch throws.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/checkpoint/checkpoint.h"
#include "server/model/kv_cache.h"
#include "server/model/rope_table.h"

namespace aerie {

// One sequence's rows of a pass; the rows of all sequences lie behind each other.
struct NetSequence {
  KvSlot* slot = nullptr;
  int64_t position = 0;  // of the first row
  int64_t rows = 0;
  bool wants_output = false;  // of the last row
};

class Eagle3Net {
 public:
  // Copies the weights as `dtype`.
  Eagle3Net(const Checkpoint& checkpoint, at::ScalarType dtype);

  at::ScalarType dtype() const { return dtype_; }
  int64_t weight_bytes() const;
  // Of the weights that every step reads: all but the embedding.
  int64_t step_bytes() const { return weight_bytes() - static_cast<int64_t>(embedding_.nbytes()); }
  // FAILED_PRECONDITION naming the first weight that holds NaN or an infinite value.
  absl::Status CheckFinite() const;
  KvShape kv_shape() const;

  // [rows, captures x target hidden] -> [rows, hidden].
  at::Tensor Fuse(const at::Tensor& aux) const;

  // `hidden` [rows, hidden] and `ids` [rows] of all sequences. Writes the KV of every row into the
  // slots, behind what counts there. Returns z of the wanted rows, [outputs, hidden], in the order
  // of the sequences.
  at::Tensor Forward(const at::Tensor& hidden, const at::Tensor& ids,
                     absl::Span<const NetSequence> sequences);

  // [outputs, hidden] -> [outputs, draft vocabulary], float32, contiguous.
  at::Tensor Logits(const at::Tensor& z) const;

 private:
  struct NamedWeight {
    const char* name;
    const at::Tensor* tensor;
  };
  std::vector<NamedWeight> Weights() const;
  at::Tensor Norm(const at::Tensor& x, const at::Tensor& weight) const;
  at::Tensor LayerInput(const at::Tensor& hidden, const at::Tensor& ids) const;
  at::Tensor Attend(const at::Tensor& queries, absl::Span<const NetSequence> sequences) const;
  at::Tensor FeedForward(const at::Tensor& y) const;

  at::ScalarType dtype_;
  int64_t heads_, kv_heads_, head_dim_, hidden_size_;
  double epsilon_;
  RopeTable rope_;
  at::Tensor
      embedding_;  // [vocab, hidden] in the type of its file: rows are converted when they are used
  at::Tensor fc_;  // matrices in dtype_
  at::Tensor qkv_;  // queries, keys and values above each other
  at::Tensor attention_output_, gate_up_, down_, output_;
  at::Tensor input_norm_, hidden_norm_, post_attention_norm_, final_norm_;  // float32
};

}  // namespace aerie
