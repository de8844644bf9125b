#include "server/guard/token_alignment.h"

#include <algorithm>
#include <cmath>

#include "common/check.h"

namespace aerie {

void AlignmentSums::Add(const AlignmentSums& other) {
  for (size_t i = 0; i < kAlignments; ++i) {
    distance[i] += other.distance[i];
    pairs[i] += other.pairs[i];
  }
  any_distance += other.any_distance;
  any_pairs += other.any_pairs;
}

double AlignmentSums::Ratio(size_t alignment) const {
  if (pairs[alignment] == 0 || any_pairs == 0 || !(any_distance > 0.0)) return 1.0;
  return (distance[alignment] / static_cast<double>(pairs[alignment])) /
         (any_distance / static_cast<double>(any_pairs));
}

int64_t AlignmentSums::ScarcestPairs() const {
  return std::min(any_pairs, *std::min_element(pairs.begin(), pairs.end()));
}

float TokenAlignment::Distance(absl::Span<const float> row, size_t kept) const {
  const float* other = rows_.data() + kept * features_;
  float sum = 0.0f;
  for (size_t i = 0; i < features_; ++i) sum += std::abs(row[i] - other[i]);
  return sum;
}

void TokenAlignment::Add(absl::Span<const float> row, const TokenKeys& keys) {
  AERIE_CHECK(row.size() == features_) << row.size();
  // The newest row of each kind is enough: more pairs of one row say the same thing again.
  std::array<bool, kAlignments> found{};
  bool found_any = false;
  const size_t count = keys_.size();
  for (size_t back = 1; back <= count; ++back) {
    const size_t kept = (next_ + kKept - back) % kKept;
    size_t equal = 0, which = 0;
    for (size_t i = 0; i < kAlignments; ++i) {
      if (keys[i] != keys_[kept][i]) continue;
      ++equal;
      which = i;
    }
    // Rows of a repeated phrase share all three, which tells nothing.
    if (equal > 1 || (equal == 1 ? found[which] : found_any)) continue;
    const double distance = Distance(row, kept);
    if (equal == 1) {
      found[which] = true;
      sums_.distance[which] += distance;
      ++sums_.pairs[which];
    } else {
      found_any = true;
      sums_.any_distance += distance;
      ++sums_.any_pairs;
    }
  }
  if (rows_.empty()) rows_.resize(kKept * features_);
  std::copy(row.begin(), row.end(), rows_.begin() + static_cast<std::ptrdiff_t>(next_ * features_));
  if (count < kKept) {
    keys_.push_back(keys);
  } else {
    keys_[next_] = keys;
  }
  next_ = (next_ + 1) % kKept;
}

AlignmentSums TokenAlignment::Take() {
  const AlignmentSums taken = sums_;
  sums_ = {};
  return taken;
}

}  // namespace aerie
