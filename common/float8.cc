#include "common/float8.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/error_detail.h"
#include "common/float16.h"

namespace aerie {
namespace {

constexpr uint8_t kNaNCode = 0x7f;
constexpr float kLargest = 448.0f;
// 240 * 2^120. What lies above the middle between it and the next code would come back as infinite.
constexpr float kLargestThatComesBack = 0x1.ep127f;

void StoreFloat(float value, char* out) {
  const auto bits = std::bit_cast<uint32_t>(value);
  for (int i = 0; i < 4; ++i) out[i] = static_cast<char>(bits >> (8 * i));
}

float LoadFloat(const char* bytes) {
  uint32_t bits = 0;
  for (int i = 0; i < 4; ++i) bits |= uint32_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  return std::bit_cast<float>(bits);
}

// The smallest power of two that brings `largest` to 448 or below; 1 for a row of zeros. NaN for
// what is not finite.
float ScaleFor(float largest) {
  if (!std::isfinite(largest)) return std::numeric_limits<float>::quiet_NaN();
  if (largest == 0.0f) return 1.0f;
  // 448 = 0.875 * 2^9. Not below 2^-126: a subnormal scale has few digits itself.
  int exponent = 0;
  const float fraction = std::frexp(largest, &exponent);
  return std::ldexp(1.0f, std::max(exponent - 9 + (fraction > 0.875f ? 1 : 0), -126));
}

// Bits of float32 without the sign: as integers they are ordered like the sizes, NaN above all. All
// that follows is integers, without branches: compilers then do several at once, and a prompt has
// millions.
int32_t SizeBits(float value) { return std::bit_cast<int32_t>(value) & 0x7fffffff; }

constexpr auto kLargestBits = std::bit_cast<int32_t>(kLargest);
constexpr auto kLargestThatComesBackBits = std::bit_cast<int32_t>(kLargestThatComesBack);
constexpr auto kSmallestNormalBits = std::bit_cast<int32_t>(0x1p-6f);

// The code of a size that is not NaN.
int32_t CodeOf(int32_t size) {
  size = std::min(size, kLargestBits);
  const int32_t normal = ((size + 0x7ffff + ((size >> 20) & 1)) >> 20) - ((127 - 7) << 3);
  // In steps of 2^-9, which is what float32 rounds to beside 2^14. Eight of them are the smallest
  // normal number, and its code.
  const int32_t subnormal = std::bit_cast<int32_t>(std::bit_cast<float>(size) + 0x1p14f) -
                            std::bit_cast<int32_t>(0x1p14f);
  const int32_t small = -static_cast<int32_t>(size < kSmallestNormalBits);
  return (subnormal & small) | (normal & ~small);
}

int32_t SignOf(float value) { return std::bit_cast<int32_t>(value) >> 24 & 0x80; }

void EncodeRow(absl::Span<const float> row, char* out) {
  int32_t largest = 0;
  for (const float value : row) largest = std::max(largest, SizeBits(value));
  const float scale = ScaleFor(std::bit_cast<float>(largest));
  StoreFloat(scale, out);
  out += 4;
  if (std::isnan(scale)) {
    std::memset(out, kNaNCode, row.size());
    return;
  }
  const float inverse = 1.0f / scale;  // exact, as 2^-126 .. 2^120 have theirs
  for (size_t i = 0; i < row.size(); ++i) {
    const int32_t size = std::min(SizeBits(row[i]), kLargestThatComesBackBits);
    const float scaled = std::bit_cast<float>(size) * inverse;
    out[i] = static_cast<char>(CodeOf(std::bit_cast<int32_t>(scaled)) | SignOf(row[i]));
  }
}

}  // namespace

uint8_t FloatToFp8(float value) {
  if (std::isnan(value)) return kNaNCode;
  return static_cast<uint8_t>(CodeOf(SizeBits(value)) | SignOf(value));
}

float Fp8ToFloat(uint8_t code) {
  const int exponent = (code >> 3) & 0xf, fraction = code & 0x7;
  if ((code & 0x7f) == kNaNCode) return std::numeric_limits<float>::quiet_NaN();
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -9)
                                   : std::ldexp(static_cast<float>(8 + fraction), exponent - 10);
  return (code & 0x80) != 0 ? -size : size;
}

std::string EncodeFp8(const HiddenRows& rows) {
  const auto width = static_cast<size_t>(rows.width());
  const size_t row_bytes = 4 + width;
  std::string out(static_cast<size_t>(rows.rows()) * row_bytes, '\0');
  std::vector<float> row(width);
  for (int64_t i = 0; i < rows.rows(); ++i) {
    rows.Slice(i, 1).CopyToFloat(absl::MakeSpan(row));
    EncodeRow(row, out.data() + static_cast<size_t>(i) * row_bytes);
  }
  return out;
}

absl::StatusOr<std::string> DecodeFp8(std::string_view bytes, int64_t rows, int64_t width) {
  const bool fits = rows >= 0 && width >= 0 && width < std::numeric_limits<int64_t>::max() / 4 &&
                    rows <= std::numeric_limits<int64_t>::max() / Fp8RowBytes(width) &&
                    static_cast<int64_t>(bytes.size()) == rows * Fp8RowBytes(width);
  if (!fits) {
    return WithReason(
        absl::InvalidArgumentError(absl::StrCat(
            "hidden states hold ", bytes.size(), " bytes; expected ", rows, " rows x (4 + ", width,
            ") bytes (float8_e4m3fn with a float32 scale in front of each row); send exactly one "
            "row for every token id")),
        kReasonByteCount);
  }
  static const std::array<float, 256> kValues = [] {
    std::array<float, 256> values;
    for (int code = 0; code < 256; ++code) {
      values[static_cast<size_t>(code)] = Fp8ToFloat(static_cast<uint8_t>(code));
    }
    return values;
  }();
  std::string out(static_cast<size_t>(rows * width) * 2, '\0');
  char* to = out.data();
  const char* from = bytes.data();
  for (int64_t row = 0; row < rows; ++row) {
    const float scale = LoadFloat(from);
    from += 4;
    if (!(scale > 0.0f) || std::isinf(scale)) {
      return WithReason(
          absl::InvalidArgumentError(absl::StrCat(
              "hidden_states row ", row, " has the scale ", scale,
              "; expected a finite number above 0, the largest value of the row / 448; check the "
              "layer that is captured for NaN and infinite values, and how rows are encoded")),
          kReasonNonFinite);
    }
    std::array<uint16_t, 256> scaled;
    for (size_t code = 0; code < 256; ++code) scaled[code] = FloatToBf16(scale * kValues[code]);
    for (int64_t i = 0; i < width; ++i, ++from, to += 2) {
      std::memcpy(to, &scaled[static_cast<uint8_t>(*from)], sizeof(uint16_t));
    }
  }
  return out;
}

}  // namespace aerie
