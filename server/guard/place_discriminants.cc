#include "server/guard/place_discriminants.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "common/check.h"
#include "server/guard/cholesky.h"
#include "server/guard/place_statistics.h"

namespace aerie {
namespace {

// Added to the diagonal of a covariance, in units of its mean: a recording has few rows for each of
// its channels' pairs.
constexpr float kShrinkage = 0.2f;
// Of the texts that must fall on their own side of the middle, on either side.
constexpr double kOnTheRightSide = 0.9;
// A direction along which held-out rows of the two places are less far apart is noise.
constexpr double kLeastDistance = 0.2;

double Dot(absl::Span<const float> a, absl::Span<const float> b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * b[i];
  return sum;
}

double Along(absl::Span<const float> direction, absl::Span<const float> mean,
             absl::Span<const float> origin) {
  return Dot(direction, mean) - Dot(direction, origin);
}

}  // namespace

PlaceDiscriminants::PlaceDiscriminants(const Capture& declared, std::vector<float> values,
                                       absl::Span<const int32_t> groups)
    : groups_(groups) {
  AERIE_CHECK(!groups.empty() && values.size() % groups.size() == 0) << values.size();
  channels_ = values.size() / groups.size();
  for (const int32_t group : groups) {
    if (static_cast<size_t>(group) >= group_rows_.size()) {
      group_rows_.resize(static_cast<size_t>(group) + 1);
    }
    ++group_rows_[static_cast<size_t>(group)];
  }
  place_.capture = declared;
  DescribeChannels(values, channels_, place_);
  sizes_.push_back(SizeOf(values));
  own_ = SumUp(std::move(values), true);
}

void PlaceDiscriminants::Add(const Capture& alternative, std::vector<float> values) {
  const Capture& own = place_.capture;
  const bool near = own.kind == Capture::Kind::kBoundary && alternative.kind == own.kind &&
                    std::abs(own.boundary - alternative.boundary) == 1;
  if (near) near_.push_back(others_.size());
  place_.alternatives.push_back({.capture = alternative});
  sizes_.push_back(SizeOf(values));
  others_.push_back(SumUp(std::move(values), near));
}

float PlaceDiscriminants::SizeOf(const std::vector<float>& values) const {
  double sum = 0.0;
  for (size_t i = 0; i < values.size(); ++i) {
    sum += std::min(std::abs(values[i]) / place_.size[i % channels_], kLargestSize);
  }
  return std::max(static_cast<float>(sum / static_cast<double>(values.size())), 1e-6f);
}

PlaceDiscriminants::Sums PlaceDiscriminants::SumUp(std::vector<float> values, bool second) const {
  AERIE_CHECK(values.size() == groups_.size() * channels_) << values.size();
  Sums sums;
  sums.first.resize(group_rows_.size() * channels_);
  if (second) sums.second.assign(kFolds, std::vector<float>(channels_ * channels_));
  for (size_t row = 0; row < groups_.size(); ++row) {
    float* at = values.data() + row * channels_;
    const auto group = static_cast<size_t>(groups_[row]);
    for (size_t c = 0; c < channels_; ++c) {
      at[c] = std::clamp((at[c] - place_.center[c]) / place_.scale[c], -kClip, kClip);
      sums.first[group * channels_ + c] += at[c];
    }
    if (!second) continue;
    float* matrix = sums.second[FoldOf(group)].data();
    for (size_t c = 0; c < channels_; ++c) {
      for (size_t d = 0; d <= c; ++d) matrix[c * channels_ + d] += at[c] * at[d];
    }
  }
  return sums;
}

int64_t PlaceDiscriminants::Rows(const UsedFolds& folds) const {
  int64_t rows = 0;
  for (size_t g = 0; g < group_rows_.size(); ++g) rows += folds[FoldOf(g)] ? group_rows_[g] : 0;
  return rows;
}

std::vector<float> PlaceDiscriminants::Mean(const Sums& sums, const UsedFolds& folds) const {
  std::vector<double> total(channels_);
  for (size_t g = 0; g < group_rows_.size(); ++g) {
    if (!folds[FoldOf(g)]) continue;
    for (size_t c = 0; c < channels_; ++c) total[c] += sums.first[g * channels_ + c];
  }
  const auto rows = static_cast<double>(Rows(folds));
  std::vector<float> mean;
  for (const double value : total) mean.push_back(static_cast<float>(value / rows));
  return mean;
}

std::vector<float> PlaceDiscriminants::GroupMean(const Sums& sums, size_t group) const {
  std::vector<float> mean;
  for (size_t c = 0; c < channels_; ++c) {
    mean.push_back(static_cast<float>(sums.first[group * channels_ + c] /
                                      static_cast<double>(group_rows_[group])));
  }
  return mean;
}

void PlaceDiscriminants::AddCovariance(const Sums& sums, const UsedFolds& folds,
                                       std::vector<float>& matrix) const {
  const auto rows = static_cast<float>(Rows(folds));
  const auto share = 1.0f / static_cast<float>(near_.size() + 1);
  const std::vector<float> mean = Mean(sums, folds);
  for (size_t c = 0; c < channels_; ++c) {
    for (size_t d = 0; d <= c; ++d) {
      float sum = 0.0f;
      for (size_t f = 0; f < folds.size(); ++f) {
        if (folds[f]) sum += sums.second[f][c * channels_ + d];
      }
      matrix[c * channels_ + d] += share * (sum / rows - mean[c] * mean[d]);
    }
  }
}

absl::StatusOr<PlaceDiscriminants::Directions> PlaceDiscriminants::Solve(
    const UsedFolds& folds) const {
  std::vector<float> covariance(channels_ * channels_);
  AddCovariance(own_, folds, covariance);
  for (const size_t index : near_) AddCovariance(others_[index], folds, covariance);
  double trace = 0.0;
  for (size_t c = 0; c < channels_; ++c) trace += covariance[c * channels_ + c];
  const auto added = static_cast<float>(kShrinkage * trace / static_cast<double>(channels_));
  for (size_t c = 0; c < channels_; ++c) covariance[c * channels_ + c] += added;
  absl::StatusOr<Cholesky> factor =
      Cholesky::Factor(std::move(covariance), static_cast<int64_t>(channels_));
  if (!factor.ok()) return factor.status();

  Directions directions{.origin = Mean(own_, folds)};
  for (const Sums& other : others_) {
    std::vector<float> step = Mean(other, folds);
    for (size_t c = 0; c < channels_; ++c) step[c] -= directions.origin[c];
    std::vector<float> weights = factor->Solve(step);
    const double length = Dot(weights, step);
    // 0: the two captures hold the same rows. The direction stays 0, and tells nothing.
    for (float& weight : weights)
      weight = length > 0.0 ? static_cast<float>(weight / length) : 0.0f;
    directions.weights.push_back(std::move(weights));
  }
  return directions;
}

absl::StatusOr<GuardPlace> PlaceDiscriminants::Make() const {
  const size_t count = others_.size();
  const size_t groups = group_rows_.size();
  // Held out, along each alternative's direction: the texts at the place and at the alternative,
  // and the means over folds of all captures.
  std::vector<std::vector<double>> at_place(count), at_other(count);
  std::vector<double> landmarks((count + 1) * count);
  for (size_t fold = 0; fold < size_t{kFolds}; ++fold) {
    UsedFolds train(kFolds, true), test(kFolds, false);
    train[fold] = false;
    test[fold] = true;
    AERIE_CHECK(Rows(test) > 0 && Rows(train) > 0) << "an empty fold";
    absl::StatusOr<Directions> directions = Solve(train);
    if (!directions.ok()) return directions.status();
    for (size_t row = 0; row <= count; ++row) {
      const std::vector<float> mean = Mean(row == 0 ? own_ : others_[row - 1], test);
      for (size_t a = 0; a < count; ++a) {
        landmarks[row * count + a] +=
            Along(directions->weights[a], mean, directions->origin) / kFolds;
      }
    }
    for (size_t g = fold; g < groups; g += size_t{kFolds}) {
      if (group_rows_[g] == 0) continue;
      const std::vector<float> own = GroupMean(own_, g);
      for (size_t a = 0; a < count; ++a) {
        at_place[a].push_back(Along(directions->weights[a], own, directions->origin));
        at_other[a].push_back(
            Along(directions->weights[a], GroupMean(others_[a], g), directions->origin));
      }
    }
  }

  absl::StatusOr<Directions> final = Solve(UsedFolds(kFolds, true));
  if (!final.ok()) return final.status();
  GuardPlace place = place_;
  place.landmarks.resize(landmarks.size());
  place.landmark_sizes = sizes_;
  for (size_t a = 0; a < count; ++a) {
    // Moved and stretched so that held-out rows of the place lie at 0 and those of the alternative
    // at 1: directions shrink on rows that they were not made from.
    const double zero = landmarks[a];
    double length = landmarks[(a + 1) * count + a] - zero;
    const bool apart = length >= kLeastDistance;
    if (!apart) length = 1.0;
    const auto share = [](const std::vector<double>& at, auto on_side) {
      return static_cast<double>(std::count_if(at.begin(), at.end(), on_side)) /
             static_cast<double>(at.size());
    };
    const double middle = zero + length / 2;
    GuardAlternative& made = place.alternatives[a];
    made.told_apart = apart &&
                      share(at_place[a], [&](double v) { return v < middle; }) >= kOnTheRightSide &&
                      share(at_other[a], [&](double v) { return v > middle; }) >= kOnTheRightSide;
    made.offset = static_cast<float>((Dot(final->weights[a], final->origin) + zero) / length);
    for (const float weight : final->weights[a]) {
      made.weights.push_back(static_cast<float>(weight / length));
    }
    for (size_t row = 0; row <= count; ++row) {
      place.landmarks[row * count + a] =
          static_cast<float>((landmarks[row * count + a] - zero) / length);
    }
  }
  return place;
}

}  // namespace aerie
