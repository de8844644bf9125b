// Puts each operation on a stream. Private to this folder.
#pragma once

#include <cuda_runtime.h>

#include "server/kernels/cuda/ops.h"

namespace aerie {
namespace AERIE_CUDA_NAMESPACE {

cudaError_t Enqueue(const ProductOp& op, cudaStream_t stream);
cudaError_t Enqueue(const NormOp& op, cudaStream_t stream);
cudaError_t Enqueue(const PrepareOp& op, cudaStream_t stream);
cudaError_t Enqueue(const TurnOp& op, cudaStream_t stream);
cudaError_t Enqueue(const AttendOp& op, cudaStream_t stream);
cudaError_t Enqueue(const RankOp& op, cudaStream_t stream);

// `kernel` takes the operation by value.
template <typename Op>
cudaError_t Launch(void (*kernel)(Op), const Op& op, dim3 grid, int threads, cudaStream_t stream) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return cudaSuccess;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, op);
}

}  // namespace AERIE_CUDA_NAMESPACE
}  // namespace aerie
