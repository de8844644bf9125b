#include "client/loadtest/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace aerie::loadtest {
namespace {

// Values below kLinear have a bucket each; above, every power of two has kLinear / 2 buckets, so
// that a bucket is at most 1/1024 of its values wide.
constexpr int kLinearBits = 11;
constexpr int64_t kLinear = int64_t{1} << kLinearBits;
constexpr int64_t kHalf = kLinear / 2;

size_t IndexOf(int64_t nanoseconds) {
  if (nanoseconds < kLinear) return static_cast<size_t>(nanoseconds);
  const int shift = std::bit_width(static_cast<uint64_t>(nanoseconds)) - kLinearBits;
  const int64_t within = (nanoseconds >> shift) - kHalf;
  return static_cast<size_t>(kLinear + (shift - 1) * kHalf + within);
}

int64_t UpperEnd(size_t index) {
  const auto i = static_cast<int64_t>(index);
  if (i < kLinear) return i;
  const int64_t shift = (i - kLinear) / kHalf + 1;
  const int64_t within = (i - kLinear) % kHalf + kHalf;
  return ((within + 1) << shift) - 1;
}

absl::Duration FromDouble(double nanoseconds) { return absl::Nanoseconds(nanoseconds); }

}  // namespace

void Histogram::Record(absl::Duration value) {
  const int64_t nanoseconds = std::max<int64_t>(0, absl::ToInt64Nanoseconds(value));
  const size_t index = IndexOf(nanoseconds);
  if (buckets_.size() <= index) buckets_.resize(index + 1);
  ++buckets_[index];
  min_ = count_ == 0 ? nanoseconds : std::min(min_, nanoseconds);
  max_ = std::max(max_, nanoseconds);
  ++count_;
  const auto v = static_cast<double>(nanoseconds);
  sum_ += v;
  sum_squares_ += v * v;
}

void Histogram::Merge(const Histogram& other) {
  if (other.count_ == 0) return;
  if (buckets_.size() < other.buckets_.size()) buckets_.resize(other.buckets_.size());
  for (size_t i = 0; i < other.buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  min_ = count_ == 0 ? other.min_ : std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  count_ += other.count_;
  sum_ += other.sum_;
  sum_squares_ += other.sum_squares_;
}

absl::Duration Histogram::min() const { return absl::Nanoseconds(min_); }
absl::Duration Histogram::max() const { return absl::Nanoseconds(max_); }

absl::Duration Histogram::Mean() const {
  return count_ == 0 ? absl::ZeroDuration() : FromDouble(sum_ / static_cast<double>(count_));
}

absl::Duration Histogram::StandardDeviation() const {
  if (count_ == 0) return absl::ZeroDuration();
  const auto n = static_cast<double>(count_);
  const double mean = sum_ / n;
  // Rounding may leave a tiny negative variance when all values are equal.
  return FromDouble(std::sqrt(std::max(0.0, sum_squares_ / n - mean * mean)));
}

absl::Duration Histogram::Quantile(double quantile) const {
  if (count_ == 0) return absl::ZeroDuration();
  const auto wanted = std::clamp<int64_t>(
      static_cast<int64_t>(std::ceil(quantile * static_cast<double>(count_))), 1, count_);
  int64_t seen = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen >= wanted) return absl::Nanoseconds(std::clamp(UpperEnd(i), min_, max_));
  }
  return max();
}

}  // namespace aerie::loadtest
