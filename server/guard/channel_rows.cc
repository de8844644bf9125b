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

// Sums side by side, so that no addition waits for the last.
template <typename Bits, typename ToFloat>
double SumOfSquares(const char* bytes, size_t count, ToFloat to_float) {
  constexpr size_t kLanes = 8;
  float sums[kLanes] = {};
  const auto add = [&](size_t i, size_t lane) {
    Bits bits;
    std::memcpy(&bits, bytes + i * sizeof(Bits), sizeof(Bits));
    const float value = to_float(bits);
    sums[lane] += value * value;
  };
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) add(i + lane, lane);
  }
  for (; i < count; ++i) add(i, 0);
  double total = 0.0;
  for (const float sum : sums) total += sum;
  return total;
}

const char* AddressOf(const HiddenRows& rows, int64_t row, int64_t column) {
  return rows.bytes().data() +
         static_cast<size_t>(row * rows.width() + column) * DTypeSize(rows.dtype());
}

}  // namespace

void ReadChannels(const HiddenRows& rows, int64_t row, int64_t first_column,
                  absl::Span<const int32_t> channels, absl::Span<float> out) {
  AERIE_CHECK(row >= 0 && row < rows.rows() && out.size() == channels.size()) << row;
  AERIE_CHECK(first_column >= 0 &&
              (channels.empty() || first_column + channels.back() < rows.width()))
      << first_column;
  const char* bytes = AddressOf(rows, row, first_column);
  switch (rows.dtype()) {
    case DType::kF32:
      return Read<float>(bytes, channels, out, [](float value) { return value; });
    case DType::kF16:
      return Read<uint16_t>(bytes, channels, out, F16ToFloat);
    case DType::kBF16:
      return Read<uint16_t>(bytes, channels, out, [](uint16_t bits) { return Bf16ToFloat(bits); });
  }
}

double MeanSquare(const HiddenRows& rows, int64_t row, int64_t first_column, int64_t columns) {
  AERIE_CHECK(row >= 0 && row < rows.rows() && columns > 0) << row;
  AERIE_CHECK(first_column >= 0 && first_column + columns <= rows.width()) << first_column;
  const char* bytes = AddressOf(rows, row, first_column);
  const auto count = static_cast<size_t>(columns);
  double sum = 0.0;
  switch (rows.dtype()) {
    case DType::kF32:
      sum = SumOfSquares<float>(bytes, count, [](float value) { return value; });
      break;
    case DType::kF16:
      sum = SumOfSquares<uint16_t>(bytes, count, F16ToFloat);
      break;
    case DType::kBF16:
      sum = SumOfSquares<uint16_t>(bytes, count, [](uint16_t bits) { return Bf16ToFloat(bits); });
      break;
  }
  return sum / static_cast<double>(columns);
}

}  // namespace aerie
