#include "server/model/decoder_layer.h"

#include <vector>

#include "server/model/attend.h"

namespace aerie {

DecoderLayer::DecoderLayer(WeightLoader& loader, int32_t layer)
    : layer_(layer),
      softmax_scale_(loader.spec().softmax_scale.value),
      projections_(LoadProjections(loader, layer)) {
  using R = HeadTensor;
  attention_output_ = loader.Matrix({R::kAttentionOutput, layer});
  if (loader.spec().output_bias.value)
    attention_output_bias_ = loader.Matrix({R::kAttentionOutputBias, layer});
  post_attention_norm_ =
      RmsNorm(loader.Norm({R::kPostAttentionNorm, layer}), loader.spec().rms_norm_eps.value);
  gate_up_ = loader.Stack({{R::kGate, layer}, {R::kUp, layer}});
  down_ = loader.Matrix({R::kDown, layer});
}

at::Tensor DecoderLayer::Forward(const at::Tensor& x, const at::Tensor& residual,
                                 const PassRows& rows, const Turns& turns, const RowChoice& choice,
                                 const Rotation& rope, KvPages& kv) const {
  const Projected projected = projections_->Project(x, turns, choice, rope);
  const at::Tensor keys = projected.keys.to(x.scalar_type()).contiguous();
  const at::Tensor values = projected.values.to(x.scalar_type()).contiguous();
  for (const NetSequence& sequence : rows.sequences()) {
    kv.Write(layer_, sequence.pages, sequence.first_row, sequence.rows,
             keys.narrow(0, sequence.first, sequence.rows).const_data_ptr(),
             values.narrow(0, sequence.first, sequence.rows).const_data_ptr());
  }
  if (choice.count() == 0) return residual.narrow(0, 0, 0);
  const at::Tensor attended =
      Attend(projected.queries, rows, choice, kv, layer_, softmax_scale_).to(x.scalar_type());
  const at::Tensor output = attention_output_bias_.defined()
                                ? at::linear(attended, attention_output_, attention_output_bias_)
                                : at::linear(attended, attention_output_);
  const at::Tensor y = choice.Pick(residual) + output;
  return y + FeedForward(y);
}

at::Tensor DecoderLayer::FeedForward(const at::Tensor& y) const {
  const at::Tensor both = at::linear(post_attention_norm_(y), gate_up_);
  const std::vector<at::Tensor> parts = both.chunk(2, 1);
  return at::linear(at::silu(parts[0]) * parts[1], down_);
}

}  // namespace aerie
