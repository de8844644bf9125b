#include "server/model/cuda_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/float16.h"
#include "common/float8.h"
#include "server/model/tensor_view.h"

namespace aerie {
namespace {

// Of pinned memory, through which all weights go.
constexpr int64_t kStagingBytes = int64_t{8} << 20;

// Of a channel's largest number. A channel of zeros, or of numbers too small for a scale, is one of
// zeros.
float ScaleOf(const float* row, int64_t count, float largest_step) {
  float most = 0.0f;
  for (int64_t i = 0; i < count; ++i) most = std::max(most, std::abs(row[i]));
  return most / largest_step;
}

// Symmetric, like PackedMatrix; returns the scale.
float QuantiseToInt8(const float* row, int64_t count, int8_t* to) {
  const float scale = ScaleOf(row, count, 127.0f);
  for (int64_t i = 0; i < count; ++i) {
    const float steps = scale > 0.0f ? row[i] / scale : 0.0f;
    to[i] = static_cast<int8_t>(std::lrint(std::clamp(steps, -127.0f, 127.0f)));
  }
  return scale;
}

// The largest number of a channel becomes fp8's largest; returns the scale.
float QuantiseToFp8(const float* row, int64_t count, uint8_t* to) {
  const float scale = ScaleOf(row, count, 448.0f);
  for (int64_t i = 0; i < count; ++i) to[i] = FloatToFp8(scale > 0.0f ? row[i] / scale : 0.0f);
  return scale;
}

// Rows of two equal matrices in turn.
at::Tensor InPairs(const at::Tensor& first, const at::Tensor& second) {
  return at::stack({first, second}, 1).reshape({2 * first.size(0), first.size(1)}).contiguous();
}

}  // namespace

CudaWeights::CudaWeights(WeightLoader& loader, DeviceElement element, Device& device)
    : loader_(loader), device_(device), staging_(device, MemoryKind::kPinned) {
  using T = HeadTensor;
  const HeadSpec& spec = loader.spec();
  staging_.Reserve<std::byte>(kStagingBytes);
  const auto matrix = [&](std::initializer_list<TensorKey> keys) {
    return Bring(loader.Stack(keys), element);
  };
  if (spec.use_aux_hidden_state.value) {
    fc = Bring(loader.Matrix(T::kFc),
               ElementBytes(element) == 1 ? DeviceElement::kBFloat16 : element);
  }
  if (spec.norm_before_fc.value) fc_input_norm = Norm(T::kFcInputNorm);
  if (spec.fc_norm.value) {
    for (int32_t i = 0; i < spec.num_captures.value; ++i) fc_norms.push_back(Norm({T::kFcNorm, i}));
  }
  hidden_norm = Norm(T::kHiddenNorm);
  for (int32_t i = 0; i < spec.num_layers.value; ++i) {
    CudaLayer layer;
    layer.input_norm = Norm({T::kInputNorm, i});
    layer.query_key_value = matrix({{T::kQuery, i}, {T::kKey, i}, {T::kValue, i}});
    if (spec.qkv_bias.value) {
      layer.query_key_value_bias =
          Bring(loader.Vector({{T::kQueryBias, i}, {T::kKeyBias, i}, {T::kValueBias, i}}));
    }
    if (spec.qk_norm.value) {
      layer.query_norm = Norm({T::kQueryNorm, i});
      layer.key_norm = Norm({T::kKeyNorm, i});
    }
    layer.attention_output = matrix({{T::kAttentionOutput, i}});
    if (spec.output_bias.value)
      layer.output_bias = Bring(loader.Vector({{T::kAttentionOutputBias, i}}));
    layer.post_attention_norm = Norm({T::kPostAttentionNorm, i});
    layer.gate_up =
        Bring(InPairs(loader.Matrix({T::kGate, i}), loader.Matrix({T::kUp, i})), element);
    layer.down = matrix({{T::kDown, i}});
    layers.push_back(layer);
  }
  final_norm = Norm(T::kFinalNorm);
  output = matrix({T::kOutput});
  staging_ = DeviceMemory();
}

CudaNorm CudaWeights::Norm(const TensorKey& key) {
  const std::vector<float> values = loader_.Vector({key});
  return {Bring(values), static_cast<int32_t>(values.size())};
}

// `rows` float32, or bfloat16 for the same.
DeviceMatrix CudaWeights::Bring(const at::Tensor& rows, DeviceElement element) {
  const int64_t channels = rows.size(0), inputs = rows.size(1);
  const int64_t stride = (inputs + kStrideElements - 1) / kStrideElements * kStrideElements;
  const int64_t row_bytes = stride * ElementBytes(element);
  DeviceMatrix matrix = {
      .channels = channels, .inputs = inputs, .stride = stride, .element = element};
  memory_.emplace_back(device_, MemoryKind::kDevice);
  memory_.back().Reserve<std::byte>(channels * row_bytes);
  auto* const to = memory_.back().Get<std::byte>();
  matrix.weights = to;
  bytes_ += channels * inputs * ElementBytes(element);

  std::vector<float> scales;
  const bool halves = rows.scalar_type() == at::kBFloat16;
  const auto* from = static_cast<const std::byte*>(rows.const_data_ptr());
  staging_.Reserve<std::byte>(row_bytes);
  const int64_t step = std::max<int64_t>(1, kStagingBytes / row_bytes);
  for (int64_t first = 0; first < channels; first += step) {
    const int64_t count = std::min(step, channels - first);
    std::byte* at = staging_.Get<std::byte>();
    std::memset(at, 0, count * row_bytes);
    for (int64_t i = 0; i < count; ++i, at += row_bytes) {
      const auto* const numbers = reinterpret_cast<const float*>(from);
      if (element == DeviceElement::kInt8) {
        scales.push_back(QuantiseToInt8(numbers, inputs, reinterpret_cast<int8_t*>(at)));
      } else if (element == DeviceElement::kFp8) {
        scales.push_back(QuantiseToFp8(numbers, inputs, reinterpret_cast<uint8_t*>(at)));
      } else if (element == DeviceElement::kBFloat16 && !halves) {
        for (int64_t j = 0; j < inputs; ++j)
          reinterpret_cast<uint16_t*>(at)[j] = FloatToBf16(numbers[j]);
      } else {
        std::memcpy(at, from, inputs * ElementBytes(element));
      }
      from += inputs * (halves ? 2 : 4);
    }
    device_.CopyIn(to + first * row_bytes, staging_.Get<std::byte>(), count * row_bytes);
    device_.Synchronize();  // the staging memory is written again
  }
  if (!scales.empty()) matrix.scales = Bring(scales);
  device_.PrepareProducts(matrix);
  return matrix;
}

const float* CudaWeights::Bring(const std::vector<float>& values) {
  const auto count = static_cast<int64_t>(values.size());
  memory_.emplace_back(device_, MemoryKind::kDevice);
  memory_.back().Reserve<float>(count);
  staging_.Reserve<float>(count);
  std::memcpy(staging_.Get<float>(), values.data(), count * sizeof(float));
  device_.CopyIn(memory_.back().Get<float>(), staging_.Get<float>(),
                 count * static_cast<int64_t>(sizeof(float)));
  device_.Synchronize();
  bytes_ += count * static_cast<int64_t>(sizeof(float));
  return memory_.back().Get<float>();
}

}  // namespace aerie
