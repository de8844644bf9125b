// Large products as a library does them, on tensor cores where the numbers are bfloat16. Private to
// this folder.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <string>

namespace aerie {
namespace AERIE_CUDA_NAMESPACE {

// out[r][c] = sum over i of in[r][i] x weights[c][i], in float32.
struct GemmOp {
  const void* in = nullptr;       // [rows, inputs], bfloat16 or float32, as the weights are
  const void* weights = nullptr;  // [channels, inputs]
  bool halves = true;             // bfloat16
  int32_t rows = 0, channels = 0, inputs = 0;  // inputs: a multiple of kStrideElements
  float* out = nullptr;                        // [rows, channels]
};

// One thread at a time. What it is given runs on its stream, and may be recorded.
class Gemm {
 public:
  virtual ~Gemm() = default;
  // "cuBLAS 13.1.0".
  virtual const std::string& name() const = 0;
  // Throws DeviceError.
  virtual void Run(const GemmOp& op) = 0;
};

// Null where this machine has no such library; `why` tells. Throws DeviceError when there is one
// and it cannot start.
std::unique_ptr<Gemm> OpenGemm(cudaStream_t stream, std::string& why);

}  // namespace AERIE_CUDA_NAMESPACE
}  // namespace aerie
