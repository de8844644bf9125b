#include "server/model/tensor_view.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "common/check.h"
#include "common/float16.h"

namespace aerie {
namespace {

at::ScalarType ScalarTypeOf(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return at::kFloat;
    case TensorType::kF16:
      return at::kHalf;
    case TensorType::kBF16:
      return at::kBFloat16;
    case TensorType::kF8E4M3:
      return at::kFloat8_e4m3fn;
    case TensorType::kF8E5M2:
      return at::kFloat8_e5m2;
    default:
      break;
  }
  AERIE_CHECK(false) << "the checkpoint lets no other type through";
  return at::kFloat;
}

at::ScalarType ScalarTypeOf(DType type) {
  return type == DType::kF32 ? at::kFloat : type == DType::kF16 ? at::kHalf : at::kBFloat16;
}

bool Aligned(std::string_view bytes, at::ScalarType type) {
  return reinterpret_cast<uintptr_t>(bytes.data()) % at::elementSize(type) == 0;
}

// Reads `bytes` in place where they are aligned, else from a copy. Not to be written to, and not to
// outlive `bytes`.
at::Tensor View(std::string_view bytes, at::IntArrayRef shape, at::ScalarType type) {
  if (Aligned(bytes, type)) {
    return at::from_blob(const_cast<char*>(bytes.data()), shape, at::TensorOptions(type));
  }
  at::Tensor copy = at::empty(shape, at::TensorOptions(type));
  AERIE_CHECK(copy.nbytes() == bytes.size()) << "shape and bytes differ";
  std::memcpy(copy.mutable_data_ptr(), bytes.data(), bytes.size());
  return copy;
}

}  // namespace

at::Tensor CopyTensor(const TensorSpan& span, at::ScalarType dtype) {
  return View(span.bytes, span.shape, ScalarTypeOf(span.type))
      .to(dtype, /*non_blocking=*/false, /*copy=*/true);
}

at::Tensor CopyTensor(const TensorSpan& span) { return CopyTensor(span, ScalarTypeOf(span.type)); }

void CopyInto(const TensorSpan& span, at::Tensor out) {
  out.copy_(View(span.bytes, span.shape, ScalarTypeOf(span.type)));
}

MappedRows::MappedRows(const TensorSpan& span, std::shared_ptr<const void> owner)
    : span_(span), owner_(std::move(owner)) {
  AERIE_CHECK(span.shape.size() == 2) << span.Describe();
}

at::Tensor MappedRows::Rows(absl::Span<const int64_t> numbers) const {
  const auto count = static_cast<int64_t>(numbers.size());
  at::Tensor rows = at::empty({count, span_.shape[1]}, at::TensorOptions(ScalarTypeOf(span_.type)));
  const int64_t row_bytes = span_.shape[1] * static_cast<int64_t>(rows.element_size());
  auto* to = static_cast<char*>(rows.mutable_data_ptr());
  for (const int64_t number : numbers) {
    AERIE_CHECK(number >= 0 && number < span_.shape[0]) << number << " of " << span_.Describe();
    std::memcpy(to, span_.bytes.data() + number * row_bytes, row_bytes);
    to += row_bytes;
  }
  return rows;
}

void MappedRows::CopyRow(int64_t number, float* out) const {
  AERIE_CHECK(number >= 0 && number < span_.shape[0]) << number << " of " << span_.Describe();
  const int64_t columns = span_.shape[1], row_bytes = columns * TensorTypeSize(span_.type);
  const std::string_view bytes = span_.bytes.substr(number * row_bytes, row_bytes);
  if (span_.type == TensorType::kF32) {
    std::memcpy(out, bytes.data(), bytes.size());
    return;
  }
  const bool bfloat16 = span_.type == TensorType::kBF16;
  if (bfloat16 || span_.type == TensorType::kF16) {
    for (int64_t i = 0; i < columns; ++i) {
      uint16_t bits;
      std::memcpy(&bits, bytes.data() + 2 * i, sizeof(bits));
      out[i] = bfloat16 ? Bf16ToFloat(bits) : F16ToFloat(bits);
    }
    return;
  }
  TensorSpan row = span_;
  row.shape = {1, columns};
  row.bytes = bytes;
  const at::Tensor floats = CopyTensor(row, at::kFloat);
  std::memcpy(out, floats.const_data_ptr<float>(), columns * sizeof(float));
}

void CopyRows(const HiddenRows& rows, at::Tensor out) {
  AERIE_CHECK(out.is_contiguous() && out.dim() == 2 && out.size(0) == rows.rows() &&
              out.size(1) == rows.width());
  out.copy_(View(rows.bytes(), {rows.rows(), rows.width()}, ScalarTypeOf(rows.dtype())));
}

absl::Span<const float> Floats(const at::Tensor& tensor) {
  AERIE_CHECK(tensor.scalar_type() == at::kFloat && tensor.is_contiguous());
  return {tensor.const_data_ptr<float>(), static_cast<size_t>(tensor.numel())};
}

at::Tensor Indices(absl::Span<const int64_t> values) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<int64_t>());
  return tensor;
}

}  // namespace aerie
