// One decoder layer: attention and feed-forward with their residuals.
//
//   y = r + W_o attention(x)       x: what the net makes of the layer's input; r: its residual
//   z = y + mlp(norm_p(y))
//
// The keys and values of a row follow from x alone. Throws what LibTorch throws.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>

#include "server/model/kv_pages.h"
#include "server/model/pass_rows.h"
#include "server/model/projections.h"
#include "server/model/rms_norm.h"
#include "server/model/weight_loader.h"

namespace aerie {

class DecoderLayer {
 public:
  DecoderLayer(WeightLoader& loader, int32_t layer);

  // `x` [rows, input width] and `residual` [rows, hidden]. Writes the keys and values of every row
  // into its page. Returns z of the chosen rows.
  at::Tensor Forward(const at::Tensor& x, const at::Tensor& residual, const PassRows& rows,
                     const Turns& turns, const RowChoice& choice, const Rotation& rope,
                     KvPages& kv) const;

 private:
  at::Tensor FeedForward(const at::Tensor& y) const;

  int32_t layer_;
  double softmax_scale_;
  std::unique_ptr<Projections> projections_;
  at::Tensor attention_output_, attention_output_bias_;  // the latter undefined without
  RmsNorm post_attention_norm_;
  at::Tensor gate_up_, down_;
};

}  // namespace aerie
