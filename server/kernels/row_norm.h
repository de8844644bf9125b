// The norm of rows: each divided by its root mean square and scaled by channel.
#pragma once

#include <cstdint>

#include "server/kernels/cpu_level.h"

namespace aerie {

struct RowNormArgs {
  const float* in = nullptr;  // [rows, width], `in_stride` floats apart
  int64_t in_stride = 0;
  const float* weight = nullptr;  // [width]
  float epsilon = 0.0f;           // added to the mean square
  int64_t rows = 0, width = 0;
  float* out = nullptr;  // likewise; may be `in`
  int64_t out_stride = 0;
};

void NormRows(const RowNormArgs& args, CpuLevel level = BestCpuLevel());

}  // namespace aerie
