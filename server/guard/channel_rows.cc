#include "server/guard/channel_rows.h"

#include <cstring>

#include "common/check.h"
#include "common/float16.h"

namespace aerie {
namespace {

template <typename Bits, typename ToFloat>
void Read(const char* bytes, absl::Span<const int32_t> channels, absl::Span<float> out,
          ToFloat to_float) {
  const auto value = [&](size_t channel) {
    Bits bits;
    std::memcpy(&bits, bytes + channel * sizeof(Bits), sizeof(Bits));
    return to_float(bits);
  };
  const size_t count = channels.size();
  if (count == 0) return;
  const auto first = static_cast<size_t>(channels.front());
  if (static_cast<size_t>(channels.back()) - first + 1 == count) {
    // All of them in a row: without the list, several go at once.
    for (size_t i = 0; i < count; ++i) out[i] = value(first + i);
    return;
  }
  for (size_t i = 0; i < count; ++i) out[i] = value(static_cast<size_t>(channels[i]));
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
