// Between bytes and tensors. The only place where memory that LibTorch does not own becomes a
// tensor.
//
// Bytes from files and messages may lie unaligned; LibTorch's kernels may not read them then, so
// they are copied first.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "common/hidden_rows.h"
#include "common/safetensors/safetensors.h"

namespace aerie {

// A copy in `dtype` that no longer needs the bytes. F32, F16, BF16, F8_E4M3 and F8_E5M2 only, as in
// all of these.
at::Tensor CopyTensor(const TensorSpan& span, at::ScalarType dtype);
// A copy in the type of the file.
at::Tensor CopyTensor(const TensorSpan& span);
// The same into `out`, of the shape of `span`.
void CopyInto(const TensorSpan& span, at::Tensor out);

// A matrix that stays in its mapped file, whether it lies aligned there or not: rows are copied as
// they are asked for. Keeps `owner` of the bytes. Immutable.
class MappedRows {
 public:
  MappedRows(const TensorSpan& span, std::shared_ptr<const void> owner);

  int64_t nbytes() const { return static_cast<int64_t>(span_.bytes.size()); }
  // [numbers.size(), columns] in the type of the file.
  at::Tensor Rows(absl::Span<const int64_t> numbers) const;
  // One row as float32; `out` has room for its columns.
  void CopyRow(int64_t number, float* out) const;

 private:
  TensorSpan span_;
  std::shared_ptr<const void> owner_;
};

// Converts `rows` into `out`, a contiguous [rows, width] tensor.
void CopyRows(const HiddenRows& rows, at::Tensor out);

// The elements of a contiguous float32 tensor; valid as long as the tensor.
absl::Span<const float> Floats(const at::Tensor& tensor);

// An int64 tensor [values.size()].
at::Tensor Indices(absl::Span<const int64_t> values);

}  // namespace aerie
