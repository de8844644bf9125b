// The kernels of one pass, in order, and what its result says.
#include <cmath>

#include "server/model/cuda_net.h"
#include "server/model/top_k.h"

namespace aerie {

void CudaNet::Norm(const CudaNorm& norm, const float* in, int64_t rows, float* out) {
  device_->Run(NormOp{.in = in,
                      .in_stride = norm.width,
                      .weight = norm.weight,
                      .epsilon = epsilon_,
                      .rows = static_cast<int32_t>(rows),
                      .width = norm.width,
                      .out = out,
                      .out_stride = norm.width});
}

void CudaNet::LaunchLayer(const CudaLayer& layer, int64_t number, const LayerInput& input,
                          const PassShape& shape) {
  const int64_t head_dim = kv_shape_.key_dim, query_width = heads_ * head_dim,
                kv_width = 2 * kv_shape_.kv_heads * head_dim, width = query_width + kv_width;
  const auto rows = static_cast<int32_t>(shape.rows);
  const auto chosen = static_cast<int32_t>(input.chosen_count);
  float* const qkv = qkv_.Get<float>();
  ProductOp project = {.matrix = layer.query_key_value,
                       .channels = width,
                       .rows = rows,
                       .in = input.x,
                       .in_stride = input.x_width,
                       .bias = layer.query_key_value_bias,
                       .out = qkv,
                       .out_stride = width};
  if (input.chosen == nullptr) {
    device_->Run(project);
  } else {
    // Keys and values of all rows, queries of the chosen ones, which move up.
    project.first_channel = query_width;
    project.channels = kv_width;
    project.out = qkv + query_width;
    if (project.bias != nullptr) project.bias += query_width;
    device_->Run(project);
    project.first_channel = 0;
    project.channels = query_width;
    project.rows = chosen;
    project.in_rows = input.chosen;
    project.out = qkv;
    project.bias = layer.query_key_value_bias;
    device_->Run(project);
  }

  const int64_t layer_bytes = store_.page_rows * kv_shape_.row_bytes();
  const DevicePages pages = {.store = pages_.Get<std::byte>(),
                             .page_bytes = store_.page_bytes,
                             .keys_at = number * layer_bytes,
                             .values_at = number * layer_bytes + layer_bytes / 2,
                             .page_rows = store_.page_rows,
                             .kv_heads = static_cast<int32_t>(kv_shape_.kv_heads),
                             .head_dim = static_cast<int32_t>(head_dim),
                             .element = kv_shape_.element == KvElement::kFloat32
                                            ? DeviceElement::kFloat32
                                            : DeviceElement::kBFloat16};
  device_->Run(TurnOp{.pages = pages,
                      .heads = static_cast<int32_t>(heads_),
                      .rows = rows,
                      .chosen = chosen,
                      .queries = qkv,
                      .query_stride = width,
                      .chosen_rows = input.chosen,
                      .keys = qkv + query_width,
                      .values = qkv + query_width + kv_width / 2,
                      .kv_stride = width,
                      .write_page = inputs_.write_page(),
                      .write_at = inputs_.write_at(),
                      .cos = inputs_.cos(),
                      .sin = inputs_.sin(),
                      .pairs = static_cast<int32_t>(rope_.pairs()),
                      .interleaved = interleaved_,
                      .query_norm = layer.query_norm.weight,
                      .key_norm = layer.key_norm.weight,
                      .epsilon = epsilon_});
  if (chosen == 0) return;

  device_->Run(AttendOp{.pages = pages,
                        .heads = static_cast<int32_t>(heads_),
                        .chosen = chosen,
                        .scale = softmax_scale_,
                        .queries = qkv,
                        .query_stride = width,
                        .seen = input.views,
                        .table = inputs_.table(),
                        .splits = shape.splits,
                        .partials = partials_.Get<float>(),
                        .out = attended_.Get<float>()});
  device_->Run(ProductOp{.matrix = layer.attention_output,
                         .channels = hidden_,
                         .rows = chosen,
                         .in = attended_.Get<float>(),
                         .in_stride = query_width,
                         .bias = layer.output_bias,
                         .finish = DeviceFinish::kAdd,
                         .residual = input.residual,
                         .residual_stride = hidden_,
                         .residual_rows = input.chosen,
                         .out = input.out,
                         .out_stride = hidden_});
  Norm(layer.post_attention_norm, input.out, chosen, normed_.Get<float>());
  const int64_t gated = layer.gate_up.channels / 2;
  device_->Run(ProductOp{.matrix = layer.gate_up,
                         .channels = 2 * gated,
                         .rows = chosen,
                         .in = normed_.Get<float>(),
                         .in_stride = hidden_,
                         .finish = DeviceFinish::kSwiGlu,
                         .out = gated_.Get<float>(),
                         .out_stride = gated});
  device_->Run(ProductOp{.matrix = layer.down,
                         .channels = hidden_,
                         .rows = chosen,
                         .in = gated_.Get<float>(),
                         .in_stride = gated,
                         .finish = DeviceFinish::kAdd,
                         .residual = input.out,
                         .residual_stride = hidden_,
                         .out = input.out,
                         .out_stride = hidden_});
}

void CudaNet::Launch(const PassShape& shape) {
  float* x = x_.Get<float>();
  // The residual of one layer becomes that of the next, so each writes where the last did not.
  float* residual = residual_.Get<float>();
  float* z = z_.Get<float>();
  device_->Run(PrepareOp{.embeddings = inputs_.embeddings(),
                         .fused = fused_.Get<float>(),
                         .states = inputs_.states(),
                         .fused_rows = static_cast<int32_t>(shape.extend_rows),
                         .embedding_norm = weights_.layers[0].input_norm.weight,
                         .hidden_norm = weights_.hidden_norm.weight,
                         .epsilon = epsilon_,
                         .normed_residual = norm_before_residual_,
                         .rows = static_cast<int32_t>(shape.rows),
                         .width = static_cast<int32_t>(hidden_),
                         .x = x,
                         .residual = residual});
  auto* const result = result_.Get<std::byte>();
  auto* const states = reinterpret_cast<float*>(result + StatesAt(shape.wanted, shape.top_k));
  for (size_t i = 0; i < weights_.layers.size(); ++i) {
    const CudaLayer& layer = weights_.layers[i];
    LayerInput input = {.x = x, .x_width = 2 * hidden_, .residual = residual};
    if (i > 0) {
      std::swap(z, residual);
      Norm(layer.input_norm, residual, shape.rows, x);
      input.x_width = hidden_;
      input.residual = residual;
    }
    const bool last = i + 1 == weights_.layers.size();
    input.chosen = last && shape.wanted < shape.rows ? inputs_.wanted() : nullptr;
    input.chosen_count = last ? shape.wanted : shape.rows;
    input.views = last ? inputs_.wanted_views() : inputs_.all_views();
    input.out = z;
    // Draft rows to come are fed with z: then it goes where the host fetches it.
    if (last && !norm_output_) input.out = z = states;
    LaunchLayer(layer, static_cast<int64_t>(i), input, shape);
  }
  if (shape.wanted == 0) return;

  float* const normed = norm_output_ ? states : normed_.Get<float>();
  const auto wanted = static_cast<int32_t>(shape.wanted);
  Norm(weights_.final_norm, z, shape.wanted, normed);
  const int64_t vocab = weights_.output.channels;
  device_->Run(ProductOp{.matrix = weights_.output,
                         .channels = vocab,
                         .rows = wanted,
                         .in = normed,
                         .in_stride = hidden_,
                         .out = scores_.Get<float>(),
                         .out_stride = vocab});
  if (shape.top_k == 0) return;  // the scores go to the host
  device_->Run(RankOp{.scores = scores_.Get<float>(),
                      .rows = wanted,
                      .count = static_cast<int32_t>(vocab),
                      .k = shape.top_k,
                      .probes = inputs_.probes(),
                      .candidates = candidates_.Get<DeviceScore>(),
                      .chunk_sums = chunk_sums_.Get<DeviceRowSummary>(),
                      .summaries = reinterpret_cast<DeviceRowSummary*>(result),
                      .best = reinterpret_cast<DeviceScore*>(result + BestAt(shape.wanted))});
}

void CudaNet::JudgeRanked(const NetInput& input, std::vector<StepOutput>& outputs) {
  const auto wanted = static_cast<int64_t>(input.rows.wanted().size());
  const auto* const result = result_host_.Get<std::byte>();
  const auto* const summaries = reinterpret_cast<const DeviceRowSummary*>(result);
  const auto* const best = reinterpret_cast<const DeviceScore*>(result + BestAt(wanted));
  for (const Question& asked : questions_.all()) {
    const DeviceRowSummary& summary = summaries[asked.number];
    RowOutput& out = outputs[asked.part].rows[asked.row];
    out.finite = summary.finite != 0;
    if (!out.finite) continue;
    const double log_sum_exp = summary.largest + std::log(double{summary.sum});
    const auto log_prob = [&](float score) { return static_cast<float>(score - log_sum_exp); };
    out.top.reserve(input.top_k);
    for (int32_t i = 0; i < input.top_k; ++i) {
      const DeviceScore& ranked = best[asked.number * input.top_k + i];
      out.top.push_back({draft_to_target_.at(ranked.id), log_prob(ranked.score)});
    }
    if (asked.probe >= 0) {
      out.probe_log_prob = probes_[asked.number] >= 0 ? log_prob(summary.probe) : -INFINITY;
    }
  }
}

// Whoever taps wants to see whole rows, and so does who wants more than the device ranks.
void CudaNet::JudgeScores(const NetInput& input, std::vector<StepOutput>& outputs) {
  const size_t vocab = draft_to_target_.size();
  for (const Question& asked : questions_.all()) {
    const absl::Span<const float> row(scores_host_.Get<float>() + asked.number * vocab, vocab);
    if (input.tap) input.tap(asked.part, row);
    outputs[asked.part].rows[asked.row] = JudgeRow(row, input.top_k, asked.probe, draft_to_target_);
  }
}

}  // namespace aerie
