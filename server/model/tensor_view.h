// Between bytes and tensors. The only place where memory that LibTorch does not own becomes a
// tensor.
//
// Bytes from files and messages may lie unaligned; LibTorch's kernels may not read them then, so
// they are copied first.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "absl/types/span.h"
#include "common/hidden_rows.h"
#include "server/checkpoint/safetensors.h"

namespace aerie {

// A copy in `dtype` that no longer needs the bytes. F32, F16 and BF16 only.
at::Tensor CopyTensor(const TensorSpan& span, at::ScalarType dtype);
// A copy in the type of the file.
at::Tensor CopyTensor(const TensorSpan& span);

// Converts `rows` into `out`, a contiguous [rows, width] tensor.
void CopyRows(const HiddenRows& rows, at::Tensor out);

// The elements of a contiguous float32 tensor; valid as long as the tensor.
absl::Span<const float> Floats(const at::Tensor& tensor);

// An int64 tensor [values.size()].
at::Tensor Indices(absl::Span<const int64_t> values);

}  // namespace aerie
