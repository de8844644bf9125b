#include "server/recording/fingerprint.h"

#include <algorithm>
#include <cmath>

#include "common/check.h"

namespace aerie {
namespace {

constexpr size_t kLevelCount = Fingerprint::kLevels.size();

// Between the two values that the level lies between, as NumPy does by default. Sorts `values`.
std::array<float, kLevelCount> Quantiles(std::vector<float>& values) {
  std::sort(values.begin(), values.end());
  std::array<float, kLevelCount> quantiles;
  for (size_t i = 0; i < kLevelCount; ++i) {
    const float place = Fingerprint::kLevels[i] * static_cast<float>(values.size() - 1);
    const auto below = static_cast<size_t>(place);
    const size_t above = std::min(below + 1, values.size() - 1);
    const float part = place - static_cast<float>(below);
    quantiles[i] = values[below] + part * (values[above] - values[below]);
  }
  return quantiles;
}

}  // namespace

std::vector<int32_t> SpreadChannels(int32_t width, int32_t most) {
  AERIE_CHECK(width > 0 && most > 0) << width << ", " << most;
  const int64_t count = std::min(width, most);
  std::vector<int32_t> channels;
  for (int64_t i = 0; i < count; ++i) channels.push_back(static_cast<int32_t>(i * width / count));
  return channels;
}

Fingerprint MakeFingerprint(absl::Span<const float> values, int32_t width,
                            std::vector<int32_t> channels) {
  AERIE_CHECK(width > 0 && !values.empty() && values.size() % static_cast<size_t>(width) == 0)
      << values.size() << " values of width " << width;
  Fingerprint made;
  made.width = width;
  made.channels = std::move(channels);
  made.rows = static_cast<int64_t>(values.size()) / width;
  const auto rows = static_cast<size_t>(made.rows);
  const size_t count = made.channels.size();
  made.quantiles.resize(kLevelCount * count);
  std::vector<float> column(rows);
  for (size_t c = 0; c < count; ++c) {
    AERIE_CHECK(made.channels[c] >= 0 && made.channels[c] < width) << made.channels[c];
    for (size_t row = 0; row < rows; ++row) {
      column[row] =
          values[row * static_cast<size_t>(width) + static_cast<size_t>(made.channels[c])];
    }
    const auto quantiles = Quantiles(column);
    for (size_t i = 0; i < kLevelCount; ++i) made.quantiles[i * count + c] = quantiles[i];
  }
  for (size_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (const float value :
         values.subspan(row * static_cast<size_t>(width), static_cast<size_t>(width))) {
      sum += double{value} * value;
    }
    column[row] = static_cast<float>(std::sqrt(sum / width));
  }
  const auto rms = Quantiles(column);
  made.row_rms.assign(rms.begin(), rms.end());
  return made;
}

FingerprintCounter::FingerprintCounter(const Fingerprint& fingerprint)
    : fingerprint_(fingerprint),
      row_(fingerprint.channels.size()),
      doubled_(kLevelCount * fingerprint.channels.size()) {
  AERIE_CHECK(fingerprint.quantiles.size() == doubled_.size()) << fingerprint.quantiles.size();
}

void FingerprintCounter::Add(absl::Span<const float> row) {
  AERIE_CHECK(static_cast<int32_t>(row.size()) == fingerprint_.width) << row.size();
  const size_t count = row_.size();
  for (size_t c = 0; c < count; ++c) {
    row_[c] = row[static_cast<size_t>(fingerprint_.channels[c])];
  }
  const float* quantile = fingerprint_.quantiles.data();
  int32_t* doubled = doubled_.data();
  for (size_t i = 0; i < kLevelCount; ++i, quantile += count, doubled += count) {
    // A value at the quantile counts half: narrow types put many values in one place.
    for (size_t c = 0; c < count; ++c) {
      doubled[c] += (row_[c] < quantile[c] ? 1 : 0) + (row_[c] <= quantile[c] ? 1 : 0);
    }
  }
  ++rows_;
}

void FingerprintCounter::Clear() {
  std::fill(doubled_.begin(), doubled_.end(), 0);
  rows_ = 0;
}

double FingerprintCounter::Distance() const {
  AERIE_CHECK(rows_ > 0) << "no rows to compare";
  const size_t count = row_.size();
  double sum = 0;
  for (size_t i = 0; i < kLevelCount; ++i) {
    for (size_t c = 0; c < count; ++c) {
      const double share = doubled_[i * count + c] / (2.0 * static_cast<double>(rows_));
      sum += std::abs(share - double{Fingerprint::kLevels[i]});
    }
  }
  return sum / static_cast<double>(kLevelCount * count);
}

}  // namespace aerie
