// Products of many rows: what a library multiplies, made ready for it and finished behind it.
// Private to this folder.
//
// What a reader would get wrong: a row of inputs goes in as two rows of bfloat16, the number and
// what rounding it left, whose products are added up. Tensor cores take no float32, and this way
// inputs keep 16 digits, as elsewhere between operations they keep 24.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>

#include "server/kernels/cuda/device_memory.h"
#include "server/kernels/cuda/gemm.cuh"
#include "server/kernels/cuda/ops.h"

namespace aerie {
namespace AERIE_CUDA_NAMESPACE {

class LargeProducts {
 public:
  // `device` outlives it, and `stream` is the one that it runs on.
  LargeProducts(Device& device, cudaStream_t stream, std::unique_ptr<Gemm> gemm);

  const Gemm& gemm() const { return *gemm_; }
  // Takes the memory that products with such a matrix want, whatever their rows. Throws
  // DeviceError.
  void Reserve(const DeviceMatrix& matrix);
  // Takes memory only for a matrix that nothing was reserved for. Throws DeviceError.
  void Run(const ProductOp& op);

 private:
  void RunPiece(const ProductOp& op);

  cudaStream_t stream_;
  std::unique_ptr<Gemm> gemm_;
  DeviceMemory in_, sums_, wide_;  // of a piece: inputs, products, and weights made bfloat16
};

}  // namespace AERIE_CUDA_NAMESPACE
}  // namespace aerie
