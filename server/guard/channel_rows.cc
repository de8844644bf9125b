#include "server/guard/channel_rows.h"

#include <cstring>

#include "common/check.h"
#include "common/float16.h"

namespace aerie {
namespace {

template <typename Bits, typename ToFloat>
void Read(const char* bytes, absl::Span<const int32_t> channels, absl::Span<float> out,
          ToFloat to_float) {
  for (size_t i = 0; i < channels.size(); ++i) {
    Bits bits;
    std::memcpy(&bits, bytes + static_cast<size_t>(channels[i]) * sizeof(Bits), sizeof(Bits));
    out[i] = to_float(bits);
  }
}

}  // namespace

void ReadChannels(const HiddenRows& rows, int64_t row, int64_t first_column,
                  absl::Span<const int32_t> channels, absl::Span<float> out) {
  AERIE_CHECK(row >= 0 && row < rows.rows() && out.size() == channels.size()) << row;
  AERIE_CHECK(first_column >= 0 &&
              (channels.empty() || first_column + channels.back() < rows.width()))
      << first_column;
  const char* bytes = rows.bytes().data() + static_cast<size_t>(row * rows.width() + first_column) *
                                                DTypeSize(rows.dtype());
  switch (rows.dtype()) {
    case DType::kF32:
      return Read<float>(bytes, channels, out, [](float value) { return value; });
    case DType::kF16:
      return Read<uint16_t>(bytes, channels, out, F16ToFloat);
    case DType::kBF16:
      return Read<uint16_t>(bytes, channels, out, [](uint16_t bits) { return Bf16ToFloat(bits); });
  }
}

}  // namespace aerie
