// Weights as memory holds them: sixteen bytes at a time, made floats four by four.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "server/kernels/cuda/ops.h"

namespace aerie {
namespace AERIE_CUDA_NAMESPACE {

// How many elements 16 bytes hold, and those from 4 x part on, each 1 / kUnit of what it stands
// for.
template <DeviceElement kElement>
struct Sixteen;

template <>
struct Sixteen<DeviceElement::kFloat32> {
  static constexpr int kCount = 4, kBytes = 4;
  static constexpr float kUnit = 1.0f;
  __device__ static float4 Part(const uint4& bits, int) {
    return make_float4(__uint_as_float(bits.x), __uint_as_float(bits.y), __uint_as_float(bits.z),
                       __uint_as_float(bits.w));
  }
};

template <>
struct Sixteen<DeviceElement::kBFloat16> {
  static constexpr int kCount = 8, kBytes = 2;
  static constexpr float kUnit = 1.0f;
  __device__ static float4 Part(const uint4& bits, int part) {
    const uint32_t low = part == 0 ? bits.x : bits.z, high = part == 0 ? bits.y : bits.w;
    return make_float4(__uint_as_float(low << 16), __uint_as_float(low & 0xffff0000u),
                       __uint_as_float(high << 16), __uint_as_float(high & 0xffff0000u));
  }
};

// The part's word of sixteen elements of a byte each.
__device__ inline uint32_t WordOf(const uint4& bits, int part) {
  return part == 0 ? bits.x : part == 1 ? bits.y : part == 2 ? bits.z : bits.w;
}

template <>
struct Sixteen<DeviceElement::kInt8> {
  static constexpr int kCount = 16, kBytes = 1;
  static constexpr float kUnit = 1.0f;
  // A byte with its sign turned round, under the exponent of 2^23, is 2^23 + 128 more than the
  // integer; quicker than converting it.
  __device__ static float AsFloat(uint32_t turned, unsigned byte) {
    return __uint_as_float(__byte_perm(turned, 0x4b000000u, 0x7540u + byte)) - 8388736.0f;
  }
  __device__ static float4 Part(const uint4& bits, int part) {
    const uint32_t word = WordOf(bits, part) ^ 0x80808080u;
    return make_float4(AsFloat(word, 0), AsFloat(word, 1), AsFloat(word, 2), AsFloat(word, 3));
  }
};

template <>
struct Sixteen<DeviceElement::kFp8> {
  static constexpr int kCount = 16, kBytes = 1;
  // A code's exponent has one bit less than a half's, and a bias of 7 where that has 15: moved to
  // the top of a half, sign apart, it is 2^8 too small, numbers below the smallest normal one
  // included. The same instructions on every generation, where some have one for fp8 and some not.
  static constexpr float kUnit = 256.0f;
  __device__ static float HalfToFloat(uint32_t half) {
    return __half2float(__ushort_as_half(static_cast<unsigned short>(half)));
  }
  __device__ static float4 Part(const uint4& bits, int part) {
    const uint32_t word = WordOf(bits, part);
    const uint32_t even = (word << 8 & 0x80008000u) | (word << 7 & 0x3f803f80u);
    const uint32_t odd = (word & 0x80008000u) | (word >> 1 & 0x3f803f80u);
    return make_float4(HalfToFloat(even & 0xffffu), HalfToFloat(odd & 0xffffu),
                       HalfToFloat(even >> 16), HalfToFloat(odd >> 16));
  }
};

}  // namespace AERIE_CUDA_NAMESPACE
}  // namespace aerie
