#include "server/guard/place_statistics.h"

#include <algorithm>
#include <cmath>

namespace aerie {
namespace {

// A channel that hardly moves in the recording must not count for more than the others.
constexpr float kLeastScale = 0.05f;

float Median(std::vector<float>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

void DescribeChannels(const std::vector<float>& values, size_t channels, GuardPlace& place) {
  const size_t rows = values.size() / channels;
  std::vector<float> column(rows);
  for (size_t c = 0; c < channels; ++c) {
    double size = 0.0;
    for (size_t row = 0; row < rows; ++row) {
      column[row] = values[row * channels + c];
      size += std::abs(column[row]);
    }
    const float center = Median(column);
    for (float& value : column) value = std::abs(value - center);
    place.center.push_back(center);
    place.scale.push_back(1.4826f * Median(column));
    place.size.push_back(static_cast<float>(size / static_cast<double>(rows)));
  }
  for (std::vector<float>* numbers : {&place.scale, &place.size}) {
    std::vector<float> copy = *numbers;
    const float least = std::max(kLeastScale * Median(copy), 1e-6f);
    for (float& number : *numbers) number = std::max(number, least);
  }
}

}  // namespace aerie
