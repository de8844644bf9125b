#include "server/model/eagle3_net.h"

#include <utility>

#include "common/status_macros.h"
#include "server/model/head_net.h"

namespace aerie {
absl::StatusOr<Eagle3Net> Eagle3Net::Load(const Checkpoint& checkpoint, at::ScalarType dtype) {
  WeightLoader loader(checkpoint, dtype);
  Eagle3Net net(loader);
  AERIE_RETURN_IF_ERROR(loader.status());
  return net;
}

Eagle3Net::Eagle3Net(WeightLoader& loader)
    : kv_shape_(KvShapeOf(loader.spec(), loader.dtype() == at::kFloat ? KvElement::kFloat32
                                                                      : KvElement::kBFloat16)),
      dtype_(loader.dtype()),
      norm_before_residual_(loader.spec().norm_before_residual.value),
      norm_output_(loader.spec().norm_output.value),
      rope_(loader.spec().rope),
      embedding_(loader.Embedding()) {
  const HeadSpec& spec = loader.spec();
  const auto norm = [&](const TensorKey& key) {
    return RmsNorm(loader.Norm(key), spec.rms_norm_eps.value);
  };
  if (spec.use_aux_hidden_state.value) fc_ = loader.Matrix(HeadTensor::kFc);
  if (spec.norm_before_fc.value) fc_input_norm_ = norm(HeadTensor::kFcInputNorm);
  if (spec.fc_norm.value) {
    for (int32_t i = 0; i < spec.num_captures.value; ++i)
      fc_norms_.push_back(norm({HeadTensor::kFcNorm, i}));
  }
  hidden_norm_ = norm(HeadTensor::kHiddenNorm);
  for (int32_t i = 0; i < spec.num_layers.value; ++i) {
    input_norms_.push_back(norm({HeadTensor::kInputNorm, i}));
    layers_.emplace_back(loader, i);
  }
  final_norm_ = norm(HeadTensor::kFinalNorm);
  output_ = loader.Matrix(HeadTensor::kOutput);
  weight_bytes_ = loader.bytes();
}

at::Tensor Eagle3Net::Fuse(const at::Tensor& aux) const {
  if (!fc_.defined()) return aux;
  if (fc_input_norm_) return at::linear(fc_input_norm_(aux), fc_);
  if (fc_norms_.empty()) return at::linear(aux, fc_);
  std::vector<at::Tensor> captures = aux.chunk(static_cast<int64_t>(fc_norms_.size()), 1);
  for (size_t i = 0; i < captures.size(); ++i) captures[i] = fc_norms_[i](captures[i]);
  return at::linear(at::cat(captures, 1), fc_);
}

at::Tensor Eagle3Net::Forward(const at::Tensor& hidden, const PassRows& rows, KvPages& kv) {
  const Turns turns = rope_.At(rows.positions(), rows.lengths());
  const RowChoice every(rows.count());
  const RowChoice wanted = RowChoice::Wanted(rows);

  const at::Tensor normed = hidden_norm_(hidden);
  const at::Tensor embedded = embedding_.Rows(rows.ids());
  at::Tensor x = at::cat({input_norms_[0].AsFloat(embedded).to(dtype_), normed}, 1);
  at::Tensor z = norm_before_residual_ ? normed : hidden;
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (i > 0) x = input_norms_[i](z);
    const bool last = i + 1 == layers_.size();
    z = layers_[i].Forward(x, z, rows, turns, last ? wanted : every, rope_, kv);
  }
  return z;
}

NetOutput Eagle3Net::Output(const at::Tensor& z) const {
  const at::Tensor normed = final_norm_(z);
  return {at::linear(normed, output_).to(at::kFloat).contiguous(), norm_output_ ? normed : z};
}

}  // namespace aerie
