// As much of CUDA's 16-bit floats as server/kernels/cuda uses, on the CPU.
#pragma once

#include "common/float16.h"

struct __half {
  unsigned short bits;
};

inline __half __ushort_as_half(unsigned short bits) { return {bits}; }
inline float __half2float(__half half) { return aerie::F16ToFloat(half.bits); }
