// One decoder layer on our own kernels: grouped-query attention and feed-forward. The equations are
// those of decoder_layer.h.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/model/attend.h"
#include "server/model/kv_pages.h"
#include "server/model/packed_math.h"
#include "server/model/pass_rows.h"
#include "server/model/rotation.h"
#include "server/model/weight_loader.h"

namespace aerie {

// What a layer is given of a pass.
struct PackedLayerInput {
  const float* x = nullptr;  // [rows, input width] of all rows
  int64_t x_width = 0;
  const float* residual = nullptr;  // [rows, hidden] of all rows
  const PassRows* rows = nullptr;
  absl::Span<const int64_t> chosen;     // rows whose output is computed, ascending
  const AttentionPlan* plan = nullptr;  // of the chosen rows
  const float* cos = nullptr;           // [rows, pairs]
  const float* sin = nullptr;
};

// Immutable but for memory that passes leave to each other.
class PackedLayer {
 public:
  PackedLayer(WeightLoader& loader, int32_t layer, WeightElement element);

  // Writes the keys and values of every row into its page. `out` [chosen rows, hidden], not the
  // residual's memory.
  void Run(const PackedLayerInput& input, const Rotation& rope, const ProductRunner& products,
           KvPages& kv, float* out);

 private:
  void Project(const PackedLayerInput& input, const ProductRunner& products);
  void Turn(const PackedLayerInput& input, const Rotation& rope);

  int32_t layer_;
  WeightElement element_;
  int64_t heads_, kv_heads_, head_dim_, hidden_;
  double softmax_scale_;
  PackedMatrix query_, key_value_, attention_output_, gate_up_, down_;
  std::vector<float> query_bias_, key_value_bias_, output_bias_;  // empty without
  PackedNorm query_norm_, key_norm_;                              // likewise
  PackedNorm post_attention_norm_;
  // Of one pass.
  ProductInput all_input_, chosen_input_;
  FloatBuffer chosen_x_, queries_, keys_values_, attended_, normed_, gated_;
};

}  // namespace aerie
