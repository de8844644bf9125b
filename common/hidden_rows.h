// A [rows, width] view over bytes that somebody else owns, with its dtype.
//
// The bytes are as they came: row-major, little-endian, no padding, perhaps not aligned. The view
// does not keep them alive.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/dtype.h"

namespace aerie {

class HiddenRows {
 public:
  HiddenRows() = default;  // no rows

  // INVALID_ARGUMENT, reason BYTE_COUNT, unless `bytes` holds exactly rows x width elements.
  static absl::StatusOr<HiddenRows> Create(DType dtype, int64_t rows, int64_t width,
                                           std::string_view bytes);

  DType dtype() const { return dtype_; }
  int64_t rows() const { return rows_; }
  int64_t width() const { return width_; }
  std::string_view bytes() const { return bytes_; }
  bool empty() const { return rows_ == 0; }

  // Rows [first, first + count). The range must lie within.
  HiddenRows Slice(int64_t first, int64_t count) const;

  // Copies all elements as fp32 into `out`, [rows, width].
  void CopyToFloat(absl::Span<float> out) const;

  struct Location {
    int64_t row = 0, column = 0;
  };
  // Of the first NaN or infinite element, if there is one.
  std::optional<Location> FindNonFinite() const;

 private:
  DType dtype_ = DType::kF32;
  int64_t rows_ = 0, width_ = 0;
  std::string_view bytes_;
};

}  // namespace aerie
