// What becomes of the sums of a product, whichever way they were made. Private to this folder.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "server/kernels/cuda/ops.h"

namespace aerie {
namespace AERIE_CUDA_NAMESPACE {

__device__ inline int64_t RowNumber(const int32_t* rows, int64_t i) {
  return rows == nullptr ? i : rows[i];
}

// One number of the result. `first` and `second` are the sums of a pair of channels.
__device__ inline void Write(const ProductOp& op, int64_t row, int64_t channel, float first,
                             float second) {
  if (op.finish == DeviceFinish::kSwiGlu) {
    op.out[row * op.out_stride + channel / 2] = first / (1.0f + expf(-first)) * second;
    return;
  }
  if (op.bias != nullptr) first += op.bias[channel];
  if (op.finish == DeviceFinish::kAdd)
    first += op.residual[RowNumber(op.residual_rows, row) * op.residual_stride + channel];
  op.out[row * op.out_stride + channel] = first;
}

}  // namespace AERIE_CUDA_NAMESPACE
}  // namespace aerie
