// What kernels of this folder share: numbers as memory holds them, and sums over warps and blocks.
//
// A sum goes through the lanes in one order, whatever the block is busy with otherwise. Every
// thread of a block calls the block's functions together.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "server/kernels/cuda/ops.h"

namespace aerie {
namespace AERIE_CUDA_NAMESPACE {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

// bfloat16: the upper half of a float.
__device__ inline float FromBf16(uint32_t half) { return __uint_as_float(half << 16); }

// To nearest, ties to even; NaN stays NaN.
__device__ inline uint16_t ToBf16(float value) {
  const uint32_t bits = __float_as_uint(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

__device__ inline float LaneSum(float value) {
  for (int step = kWarp / 2; step > 0; step /= 2) value += __shfl_xor_sync(kAllLanes, value, step);
  return value;
}

__device__ inline float LaneMax(float value) {
  for (int step = kWarp / 2; step > 0; step /= 2)
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, step));
  return value;
}

// Over a block of kThreads. `shared` [kThreads / 32] may be used again at once.
template <int kThreads, typename Reduce>
__device__ inline float OverBlock(float value, float* shared, Reduce reduce) {
  const int thread = static_cast<int>(threadIdx.x);
  value = reduce(value);
  __syncthreads();  // whoever still reads what the last call left
  if (thread % kWarp == 0) shared[thread / kWarp] = value;
  __syncthreads();
  float all = shared[0];
  for (int warp = 1; warp < kThreads / kWarp; ++warp) all = reduce.Join(all, shared[warp]);
  return all;
}

struct SumLanes {
  __device__ float operator()(float value) const { return LaneSum(value); }
  __device__ float Join(float a, float b) const { return a + b; }
};
struct MaxLanes {
  __device__ float operator()(float value) const { return LaneMax(value); }
  __device__ float Join(float a, float b) const { return fmaxf(a, b); }
};

template <int kThreads>
__device__ inline float BlockSum(float value, float* shared) {
  return OverBlock<kThreads>(value, shared, SumLanes());
}
template <int kThreads>
__device__ inline float BlockMax(float value, float* shared) {
  return OverBlock<kThreads>(value, shared, MaxLanes());
}

}  // namespace AERIE_CUDA_NAMESPACE
}  // namespace aerie
