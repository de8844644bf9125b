// A head's weights on a device: brought there once, matrix by matrix, in the type that they are
// computed in.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "server/checkpoint/checkpoint.h"
#include "server/kernels/cuda/device.h"
#include "server/kernels/cuda/device_memory.h"
#include "server/model/weight_loader.h"

namespace aerie {

// The memory that a matrix or a vector lies in belongs to the CudaWeights that brought it there.
struct CudaNorm {
  const float* weight = nullptr;  // null: there is none
  int32_t width = 0;
};

struct CudaLayer {
  DeviceMatrix query_key_value;  // queries, keys, values on top of each other
  DeviceMatrix attention_output, gate_up, down;
  const float* query_key_value_bias = nullptr;  // null without
  const float* output_bias = nullptr;           // likewise
  CudaNorm input_norm, query_norm, key_norm, post_attention_norm;
};

class CudaWeights {
 public:
  // fc stays bfloat16 with kInt8 and kFp8, as in PackedNet. Faults of the weights are left in the
  // loader's status. Throws DeviceError and what LibTorch throws.
  CudaWeights(WeightLoader& loader, DeviceElement element, Device& device);

  // What a WeightLoader for `element` is made with.
  static at::ScalarType LoadedAs(DeviceElement element) {
    return element == DeviceElement::kBFloat16 ? at::kBFloat16 : at::kFloat;
  }

  // Without the embedding, which stays in its file.
  int64_t bytes() const { return bytes_; }

  std::optional<DeviceMatrix> fc;  // nullopt without aux hidden states
  CudaNorm fc_input_norm;
  std::vector<CudaNorm> fc_norms;  // one for each capture, or none
  CudaNorm hidden_norm, final_norm;
  std::vector<CudaLayer> layers;
  DeviceMatrix output;

 private:
  DeviceMatrix Bring(const at::Tensor& rows, DeviceElement element);
  const float* Bring(const std::vector<float>& values);
  CudaNorm Norm(const TensorKey& key);

  WeightLoader& loader_;
  Device& device_;
  int64_t bytes_ = 0;
  DeviceMemory staging_;
  std::vector<DeviceMemory> memory_;
};

}  // namespace aerie
