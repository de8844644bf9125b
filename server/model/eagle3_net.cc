#include "server/model/eagle3_net.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/model/tensor_view.h"

namespace aerie {
namespace {

// Row numbers, within the pass, of the rows whose output is wanted.
std::vector<int64_t> OutputRows(absl::Span<const NetSequence> sequences) {
  std::vector<int64_t> rows;
  int64_t end = 0;
  for (const NetSequence& sequence : sequences) {
    end += sequence.rows;
    if (sequence.wants_output) rows.push_back(end - 1);
  }
  return rows;
}

std::vector<int64_t> Positions(absl::Span<const NetSequence> sequences) {
  std::vector<int64_t> positions;
  for (const NetSequence& sequence : sequences) {
    for (int64_t row = 0; row < sequence.rows; ++row) positions.push_back(sequence.position + row);
  }
  return positions;
}

}  // namespace

Eagle3Net::Eagle3Net(const Checkpoint& checkpoint, at::ScalarType dtype)
    : dtype_(dtype),
      heads_(checkpoint.spec.num_heads.value),
      kv_heads_(checkpoint.spec.num_kv_heads.value),
      head_dim_(checkpoint.spec.head_dim.value),
      hidden_size_(checkpoint.spec.hidden_size.value),
      epsilon_(checkpoint.spec.rms_norm_eps.value),
      rope_(checkpoint.spec.rope.theta.value, head_dim_),
      embedding_(CopyTensor(checkpoint.embedding)) {
  const auto matrix = [&](HeadTensor tensor) {
    return CopyTensor(checkpoint.tensors.at(tensor), dtype);
  };
  const auto norm = [&](HeadTensor tensor) {
    return CopyTensor(checkpoint.tensors.at(tensor), at::kFloat);
  };
  fc_ = matrix(HeadTensor::kFc);
  qkv_ =
      at::cat({matrix(HeadTensor::kQuery), matrix(HeadTensor::kKey), matrix(HeadTensor::kValue)});
  attention_output_ = matrix(HeadTensor::kAttentionOutput);
  gate_up_ = at::cat({matrix(HeadTensor::kGate), matrix(HeadTensor::kUp)});
  down_ = matrix(HeadTensor::kDown);
  output_ = matrix(HeadTensor::kOutput);
  input_norm_ = norm(HeadTensor::kInputNorm);
  hidden_norm_ = norm(HeadTensor::kHiddenNorm);
  post_attention_norm_ = norm(HeadTensor::kPostAttentionNorm);
  final_norm_ = norm(HeadTensor::kFinalNorm);
}

std::vector<Eagle3Net::NamedWeight> Eagle3Net::Weights() const {
  return {{"the embedding", &embedding_},
          {"fc", &fc_},
          {"the query, key or value matrix", &qkv_},
          {"o_proj", &attention_output_},
          {"gate_proj or up_proj", &gate_up_},
          {"down_proj", &down_},
          {"lm_head", &output_},
          {"input_layernorm", &input_norm_},
          {"hidden_norm", &hidden_norm_},
          {"post_attention_layernorm", &post_attention_norm_},
          {"norm", &final_norm_}};
}

int64_t Eagle3Net::weight_bytes() const {
  int64_t bytes = 0;
  for (const NamedWeight& weight : Weights())
    bytes += static_cast<int64_t>(weight.tensor->nbytes());
  return bytes;
}

absl::Status Eagle3Net::CheckFinite() const {
  for (const NamedWeight& weight : Weights()) {
    const auto [least, greatest] = at::aminmax(*weight.tensor);  // NaN wins in both
    if (std::isfinite(least.item<double>()) && std::isfinite(greatest.item<double>())) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("the weights of ", weight.name,
                     " hold NaN or infinite values; expected numbers; fetch the files "
                     "again, or load them with --dtype=float32"));
  }
  return absl::OkStatus();
}

KvShape Eagle3Net::kv_shape() const { return {kv_heads_, head_dim_, hidden_size_, dtype_}; }

at::Tensor Eagle3Net::Fuse(const at::Tensor& aux) const { return at::linear(aux, fc_); }

at::Tensor Eagle3Net::Norm(const at::Tensor& x, const at::Tensor& weight) const {
  const at::Tensor full = x.to(at::kFloat);
  const at::Tensor scale = full.square().mean(-1, /*keepdim=*/true).add_(epsilon_).rsqrt_();
  return (full * scale).mul_(weight).to(dtype_);
}

at::Tensor Eagle3Net::LayerInput(const at::Tensor& hidden, const at::Tensor& ids) const {
  return at::cat({Norm(embedding_.index_select(0, ids), input_norm_), Norm(hidden, hidden_norm_)},
                 1);
}

at::Tensor Eagle3Net::Forward(const at::Tensor& hidden, const at::Tensor& ids,
                              absl::Span<const NetSequence> sequences) {
  // All room first, so that nothing has been written when memory runs out.
  for (const NetSequence& sequence : sequences) {
    const int64_t end = sequence.position + sequence.rows;
    sequence.slot->Reserve(end);
    rope_.Reserve(end);
  }
  const int64_t rows = hidden.size(0);
  const at::Tensor positions = Indices(Positions(sequences));
  const at::Tensor outputs = Indices(OutputRows(sequences));
  const bool all = outputs.size(0) == rows;  // draft rows only: one product instead of two

  const at::Tensor x = LayerInput(hidden, ids);
  const int64_t query_rows = heads_ * head_dim_;
  at::Tensor queries, keys, values;
  if (all) {
    const at::Tensor qkv = at::linear(x, qkv_).view({rows, heads_ + 2 * kv_heads_, head_dim_});
    const at::Tensor rotated = rope_.Rotate(qkv.narrow(1, 0, heads_ + kv_heads_), positions);
    queries = rotated.narrow(1, 0, heads_);
    keys = rotated.narrow(1, heads_, kv_heads_);
    values = qkv.narrow(1, heads_ + kv_heads_, kv_heads_);
  } else {
    const at::Tensor kv_weight = qkv_.narrow(0, query_rows, 2 * kv_heads_ * head_dim_);
    const at::Tensor kv = at::linear(x, kv_weight).view({rows, 2 * kv_heads_, head_dim_});
    keys = rope_.Rotate(kv.narrow(1, 0, kv_heads_), positions);
    values = kv.narrow(1, kv_heads_, kv_heads_);
    const at::Tensor q = at::linear(x.index_select(0, outputs), qkv_.narrow(0, 0, query_rows));
    queries = rope_.Rotate(q.view({-1, heads_, head_dim_}), positions.index_select(0, outputs));
  }
  int64_t first = 0;
  for (const NetSequence& sequence : sequences) {
    sequence.slot->Write(sequence.position, keys.narrow(0, first, sequence.rows),
                         values.narrow(0, first, sequence.rows));
    first += sequence.rows;
  }
  if (outputs.size(0) == 0) return at::empty({0, hidden_size_}, at::TensorOptions(dtype_));

  const at::Tensor residual = all ? hidden : hidden.index_select(0, outputs);
  const at::Tensor y =
      residual + at::linear(Attend(queries.to(dtype_), sequences), attention_output_);
  return y + FeedForward(y);
}

// One query for each wanted output, [outputs, heads, head_dim]: the last row of its sequence, which
// sees all rows of the slot. So there is nothing to mask.
at::Tensor Eagle3Net::Attend(const at::Tensor& queries,
                             absl::Span<const NetSequence> sequences) const {
  at::Tensor attended = at::empty({queries.size(0), heads_ * head_dim_}, at::TensorOptions(dtype_));
  // Query heads that share a key head stand side by side as its queries: no key is copied for them.
  const std::vector<int64_t> grouped = {1, kv_heads_, heads_ / kv_heads_, head_dim_};
  int64_t output = 0;
  for (const NetSequence& sequence : sequences) {
    if (!sequence.wants_output) continue;
    const int64_t length = sequence.position + sequence.rows;
    const at::Tensor result = at::scaled_dot_product_attention(
        queries.select(0, output).reshape(grouped), sequence.slot->Keys(length).unsqueeze(0),
        sequence.slot->Values(length).unsqueeze(0));
    attended.select(0, output).view(grouped).copy_(result);
    ++output;
  }
  return attended;
}

at::Tensor Eagle3Net::FeedForward(const at::Tensor& y) const {
  const at::Tensor both = at::linear(Norm(y, post_attention_norm_), gate_up_);
  const std::vector<at::Tensor> parts = both.chunk(2, 1);
  return at::linear(at::silu(parts[0]) * parts[1], down_);
}

at::Tensor Eagle3Net::Logits(const at::Tensor& z) const {
  return at::linear(Norm(z, final_norm_), output_).to(at::kFloat).contiguous();
}

}  // namespace aerie
