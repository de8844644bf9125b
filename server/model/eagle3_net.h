// The equations of an EAGLE-3 head: weights and arithmetic, no sequence bookkeeping.
//
//   h = W_fc aux                          extend rows; draft rows bring their h
//   x = [norm_e(embedding) ; norm_h(h)]   into the first layer: the embedding first, both normed
//   r = h, or norm_h(h)                   its residual; the latter with norm_before_residual
//   x = norm_i(z), r = z                  into every later layer, of the one before
//   logits = W_lm norm_f(z)               over the draft vocabulary
//   z, or norm_f(z) with norm_output      what a draft row to come is fed
//
// In front of W_fc stand norms with norm_before_fc and fc_norm; without aux hidden states, h is the
// one capture as it came.
//
// The keys and values of a layer's row follow from its input alone. So rows of which nobody wants
// the output, nearly all of a prompt, stop there in the last layer. Throws what LibTorch throws.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "server/checkpoint/checkpoint.h"
#include "server/model/decoder_layer.h"
#include "server/model/kv_pages.h"
#include "server/model/pass_rows.h"
#include "server/model/rms_norm.h"
#include "server/model/rotation.h"
#include "server/model/tensor_view.h"
#include "server/model/weight_loader.h"

namespace aerie {

// What comes out for the wanted rows.
struct NetOutput {
  at::Tensor logits;    // [outputs, draft vocabulary], float32, contiguous
  at::Tensor feedback;  // [outputs, hidden]: what a draft row to come takes as its h
};

class Eagle3Net {
 public:
  // Weights in `dtype`, but for the embedding, which stays in its file. FAILED_PRECONDITION when
  // one holds NaN or an infinite value.
  static absl::StatusOr<Eagle3Net> Load(const Checkpoint& checkpoint, at::ScalarType dtype);

  at::ScalarType dtype() const { return dtype_; }
  const KvShape& kv_shape() const { return kv_shape_; }
  int64_t weight_bytes() const { return weight_bytes_; }
  // Of the weights that every step reads: all but the embedding.
  int64_t step_bytes() const { return weight_bytes_ - embedding_.nbytes(); }

  // [rows, captures x target hidden] -> [rows, hidden].
  at::Tensor Fuse(const at::Tensor& aux) const;

  // `hidden` [rows, hidden] of all rows of the pass. Writes the KV of every row into its page.
  // Returns z of the wanted rows, [outputs, hidden], in their order.
  at::Tensor Forward(const at::Tensor& hidden, const PassRows& rows, KvPages& kv);

  // Of z, [outputs, hidden].
  NetOutput Output(const at::Tensor& z) const;

 private:
  explicit Eagle3Net(WeightLoader& loader);

  KvShape kv_shape_;
  at::ScalarType dtype_;
  int64_t weight_bytes_ = 0;
  bool norm_before_residual_, norm_output_;
  Rotation rope_;
  MappedRows embedding_;  // [vocab, hidden]: rows are converted when they are used
  RmsNorm fc_input_norm_;
  std::vector<RmsNorm> fc_norms_;  // one for each capture, or none
  at::Tensor fc_;                  // undefined without aux hidden states
  RmsNorm hidden_norm_;
  std::vector<RmsNorm> input_norms_;  // of each layer
  std::vector<DecoderLayer> layers_;
  RmsNorm final_norm_;
  at::Tensor output_;
};

}  // namespace aerie
