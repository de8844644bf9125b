#include "server/model/cuda_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/float16.h"
#include "server/model/tensor_view.h"

namespace aerie {
namespace {

// Of pinned memory, through which all weights go.
constexpr int64_t kStagingBytes = int64_t{8} << 20;

DeviceElement ElementOf(WeightElement element) {
  switch (element) {
    case WeightElement::kFloat32:
      return DeviceElement::kFloat32;
    case WeightElement::kBFloat16:
      return DeviceElement::kBFloat16;
    case WeightElement::kInt8:
      break;
  }
  return DeviceElement::kInt8;
}

int64_t BytesOf(WeightElement element) {
  return element == WeightElement::kFloat32 ? 4 : element == WeightElement::kBFloat16 ? 2 : 1;
}

// Symmetric, like PackedMatrix; returns the scale.
float Quantise(const float* row, int64_t count, int8_t* to) {
  float most = 0.0f;
  for (int64_t i = 0; i < count; ++i) most = std::max(most, std::abs(row[i]));
  const float scale = most / 127.0f;
  for (int64_t i = 0; i < count; ++i)
    to[i] = scale == 0.0f ? int8_t{0} : static_cast<int8_t>(std::lrint(row[i] / scale));
  return scale;
}

// Rows of two equal matrices in turn.
at::Tensor InPairs(const at::Tensor& first, const at::Tensor& second) {
  return at::stack({first, second}, 1).reshape({2 * first.size(0), first.size(1)}).contiguous();
}

}  // namespace

CudaWeights::CudaWeights(WeightLoader& loader, WeightElement element, Device& device)
    : loader_(loader), device_(device), staging_(device, MemoryKind::kPinned) {
  using T = HeadTensor;
  const HeadSpec& spec = loader.spec();
  staging_.Reserve<std::byte>(kStagingBytes);
  const auto matrix = [&](std::initializer_list<TensorKey> keys) {
    return Bring(loader.Stack(keys), element);
  };
  if (spec.use_aux_hidden_state.value) {
    fc = Bring(loader.Matrix(T::kFc),
               element == WeightElement::kInt8 ? WeightElement::kBFloat16 : element);
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
DeviceMatrix CudaWeights::Bring(const at::Tensor& rows, WeightElement element) {
  const int64_t channels = rows.size(0), inputs = rows.size(1);
  const int64_t stride = (inputs + kStrideElements - 1) / kStrideElements * kStrideElements;
  const int64_t row_bytes = stride * BytesOf(element);
  DeviceMatrix matrix = {
      .channels = channels, .inputs = inputs, .stride = stride, .element = ElementOf(element)};
  memory_.emplace_back(device_, MemoryKind::kDevice);
  memory_.back().Reserve<std::byte>(channels * row_bytes);
  auto* const to = memory_.back().Get<std::byte>();
  matrix.weights = to;
  bytes_ += channels * inputs * BytesOf(element);

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
      if (element == WeightElement::kInt8) {
        scales.push_back(
            Quantise(reinterpret_cast<const float*>(from), inputs, reinterpret_cast<int8_t*>(at)));
      } else if (element == WeightElement::kBFloat16 && !halves) {
        for (int64_t j = 0; j < inputs; ++j)
          reinterpret_cast<uint16_t*>(at)[j] = FloatToBf16(reinterpret_cast<const float*>(from)[j]);
      } else {
        std::memcpy(at, from, inputs * BytesOf(element));
      }
      from += inputs * (halves ? 2 : 4);
    }
    device_.CopyIn(to + first * row_bytes, staging_.Get<std::byte>(), count * row_bytes);
    device_.Synchronize();  // the staging memory is written again
  }
  if (element == WeightElement::kInt8) matrix.scales = Bring(scales);
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
