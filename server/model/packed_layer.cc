#include "server/model/packed_layer.h"

#include <cstring>

namespace aerie {
namespace {

const float* DataOrNull(const std::vector<float>& values) {
  return values.empty() ? nullptr : values.data();
}

}  // namespace

PackedLayer::PackedLayer(WeightLoader& loader, int32_t layer, WeightElement element)
    : layer_(layer),
      element_(element),
      heads_(loader.spec().num_heads.value),
      kv_heads_(loader.spec().num_kv_heads.value),
      head_dim_(loader.spec().head_dim.value),
      hidden_(loader.spec().hidden_size.value),
      softmax_scale_(loader.spec().softmax_scale.value) {
  using R = HeadTensor;
  const HeadSpec& spec = loader.spec();
  const auto norm = [&](const TensorKey& key) {
    return PackedNorm{loader.Vector({key}), static_cast<float>(spec.rms_norm_eps.value)};
  };
  query_ = loader.Packed({{R::kQuery, layer}}, element);
  key_value_ = loader.Packed({{R::kKey, layer}, {R::kValue, layer}}, element);
  if (spec.qkv_bias.value) {
    query_bias_ = loader.Vector({{R::kQueryBias, layer}});
    key_value_bias_ = loader.Vector({{R::kKeyBias, layer}, {R::kValueBias, layer}});
  }
  if (spec.qk_norm.value) {
    query_norm_ = norm({R::kQueryNorm, layer});
    key_norm_ = norm({R::kKeyNorm, layer});
  }
  attention_output_ = loader.Packed({{R::kAttentionOutput, layer}}, element);
  if (spec.output_bias.value) output_bias_ = loader.Vector({{R::kAttentionOutputBias, layer}});
  post_attention_norm_ = norm({R::kPostAttentionNorm, layer});
  gate_up_ = loader.PackedPairs({R::kGate, layer}, {R::kUp, layer}, element);
  down_ = loader.Packed({{R::kDown, layer}}, element);
}

// Queries of the chosen rows, keys and values of all.
void PackedLayer::Project(const PackedLayerInput& input, const ProductRunner& products) {
  const int64_t rows = input.rows->count(), chosen = static_cast<int64_t>(input.chosen.size());
  all_input_.Set(input.x, rows, input.x_width, input.x_width, element_);
  const ProductInput* asking = &all_input_;
  if (chosen < rows) {
    float* const x = chosen_x_.Get(chosen * input.x_width);
    for (int64_t i = 0; i < chosen; ++i) {
      std::memcpy(x + i * input.x_width, input.x + input.chosen[i] * input.x_width,
                  input.x_width * sizeof(float));
    }
    chosen_input_.Set(x, chosen, input.x_width, input.x_width, element_);
    asking = &chosen_input_;
  }
  const int64_t query_width = heads_ * head_dim_, kv_width = 2 * kv_heads_ * head_dim_;
  const Product keys_values = {.matrix = &key_value_,
                               .input = &all_input_,
                               .bias = DataOrNull(key_value_bias_),
                               .out = keys_values_.Get(rows * kv_width),
                               .out_stride = kv_width};
  if (chosen == 0) return products.Run({keys_values});
  products.Run({keys_values,
                {.matrix = &query_,
                 .input = asking,
                 .bias = DataOrNull(query_bias_),
                 .out = queries_.Get(chosen * query_width),
                 .out_stride = query_width}});
}

// Norms and rotates queries and keys in place.
void PackedLayer::Turn(const PackedLayerInput& input, const Rotation& rope) {
  const int64_t pairs = rope.pairs(), kv_width = 2 * kv_heads_ * head_dim_;
  const auto turn = [&](float* heads, int64_t count, const PackedNorm& norm, int64_t row) {
    if (norm.exists()) norm.Run(heads, head_dim_, count, heads, head_dim_);
    for (int64_t head = 0; head < count; ++head)
      rope.RotateHead(heads + head * head_dim_, input.cos + row * pairs, input.sin + row * pairs);
  };
  float* const keys = keys_values_.Get(0);
  for (int64_t row = 0; row < input.rows->count(); ++row)
    turn(keys + row * kv_width, kv_heads_, key_norm_, row);
  float* const queries = queries_.Get(0);
  for (size_t i = 0; i < input.chosen.size(); ++i)
    turn(queries + i * heads_ * head_dim_, heads_, query_norm_, input.chosen[i]);
}

void PackedLayer::Run(const PackedLayerInput& input, const Rotation& rope,
                      const ProductRunner& products, KvPages& kv, float* out) {
  Project(input, products);
  Turn(input, rope);
  const int64_t kv_width = 2 * kv_heads_ * head_dim_;
  const float* const keys = keys_values_.Get(0);
  for (const NetSequence& sequence : input.rows->sequences()) {
    const float* const own = keys + sequence.first * kv_width;
    kv.WriteFloats(layer_, sequence.pages, sequence.first_row, sequence.rows, own,
                   own + kv_heads_ * head_dim_, kv_width);
  }
  const auto chosen = static_cast<int64_t>(input.chosen.size());
  if (chosen == 0) return;

  const int64_t attended_width = heads_ * head_dim_;
  const AttentionRows attention = {queries_.Get(0), attended_.Get(chosen * attended_width), heads_,
                                   softmax_scale_};
  if (input.plan->Workers(kv.shape(), heads_) > 1) {
    products.pool().Run(input.plan->tasks(),
                        [&](int64_t task, int) { input.plan->Run(task, attention, kv, layer_); });
  } else {
    for (int64_t task = 0; task < input.plan->tasks(); ++task)
      input.plan->Run(task, attention, kv, layer_);
  }
  for (int64_t i = 0; i < chosen; ++i) {
    std::memcpy(out + i * hidden_, input.residual + input.chosen[i] * hidden_,
                hidden_ * sizeof(float));
  }
  chosen_input_.Set(attention.out, chosen, attended_width, attended_width, element_);
  products.Run({{.matrix = &attention_output_,
                 .input = &chosen_input_,
                 .bias = DataOrNull(output_bias_),
                 .finish = Finish::kAdd,
                 .out = out,
                 .out_stride = hidden_}});

  float* const normed = normed_.Get(chosen * hidden_);
  post_attention_norm_.Run(out, hidden_, chosen, normed, hidden_);
  chosen_input_.Set(normed, chosen, hidden_, hidden_, element_);
  const int64_t width = gate_up_.channels();
  float* const gated = gated_.Get(chosen * width);
  products.Run({{.matrix = &gate_up_,
                 .input = &chosen_input_,
                 .finish = Finish::kSwiGlu,
                 .out = gated,
                 .out_stride = width}});
  chosen_input_.Set(gated, chosen, width, width, element_);
  products.Run({{.matrix = &down_,
                 .input = &chosen_input_,
                 .finish = Finish::kAdd,
                 .out = out,
                 .out_stride = hidden_}});
}

}  // namespace aerie
