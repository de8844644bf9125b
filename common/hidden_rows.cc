#include "common/hidden_rows.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "common/error_detail.h"
#include "common/float16.h"

namespace aerie {
namespace {

template <typename Bits>
Bits Load(const char* bytes) {
  Bits bits;
  std::memcpy(&bits, bytes, sizeof(bits));
  return bits;
}

// All ones in the exponent: infinite or NaN.
template <typename Bits>
int64_t FirstWithExponent(std::string_view bytes, Bits exponent) {
  const int64_t count = static_cast<int64_t>(bytes.size() / sizeof(Bits));
  for (int64_t i = 0; i < count; ++i) {
    const Bits bits = Load<Bits>(bytes.data() + i * static_cast<int64_t>(sizeof(Bits)));
    if ((bits & exponent) == exponent) return i;
  }
  return -1;
}

}  // namespace

absl::StatusOr<HiddenRows> HiddenRows::Create(DType dtype, int64_t rows, int64_t width,
                                              std::string_view bytes) {
  if (rows < 0 || width < 0) {
    return absl::InvalidArgumentError(absl::StrCat("hidden states have shape [", rows, ", ", width,
                                                   "]; expected no negative size"));
  }
  const int64_t element = static_cast<int64_t>(DTypeSize(dtype));
  const bool overflows = width != 0 && rows > std::numeric_limits<int64_t>::max() / element / width;
  if (overflows || static_cast<int64_t>(bytes.size()) != rows * width * element) {
    return WithReason(
        absl::InvalidArgumentError(absl::StrCat(
            "hidden states hold ", bytes.size(), " bytes; expected ",
            overflows ? "fewer rows than overflow" : absl::StrCat(rows * width * element), " = ",
            rows, " rows x ", width, " elements x ", element, " bytes (", DTypeName(dtype),
            "); send exactly one row for every token id")),
        kReasonByteCount);
  }
  HiddenRows view;
  view.dtype_ = dtype;
  view.rows_ = rows;
  view.width_ = width;
  view.bytes_ = bytes;
  return view;
}

HiddenRows HiddenRows::Slice(int64_t first, int64_t count) const {
  AERIE_CHECK(first >= 0 && count >= 0 && first + count <= rows_)
      << "rows " << first << "+" << count << " of " << rows_;
  const size_t row_bytes = static_cast<size_t>(width_) * DTypeSize(dtype_);
  HiddenRows view = *this;
  view.rows_ = count;
  view.bytes_ =
      bytes_.substr(static_cast<size_t>(first) * row_bytes, static_cast<size_t>(count) * row_bytes);
  return view;
}

void HiddenRows::CopyToFloat(absl::Span<float> out) const {
  AERIE_CHECK(static_cast<int64_t>(out.size()) == rows_ * width_) << out.size();
  const char* bytes = bytes_.data();
  switch (dtype_) {
    case DType::kF32:
      if (!out.empty()) std::memcpy(out.data(), bytes, bytes_.size());
      return;
    case DType::kF16:
      for (size_t i = 0; i < out.size(); ++i) out[i] = F16ToFloat(Load<uint16_t>(bytes + 2 * i));
      return;
    case DType::kBF16:
      for (size_t i = 0; i < out.size(); ++i) out[i] = Bf16ToFloat(Load<uint16_t>(bytes + 2 * i));
      return;
  }
}

std::optional<HiddenRows::Location> HiddenRows::FindNonFinite() const {
  int64_t index = -1;
  switch (dtype_) {
    case DType::kF32:
      index = FirstWithExponent<uint32_t>(bytes_, 0x7f800000u);
      break;
    case DType::kF16:
      index = FirstWithExponent<uint16_t>(bytes_, 0x7c00u);
      break;
    case DType::kBF16:
      index = FirstWithExponent<uint16_t>(bytes_, 0x7f80u);
      break;
  }
  if (index < 0) return std::nullopt;
  return Location{index / width_, index % width_};
}

}  // namespace aerie
