#include "server/guard/row_sketch.h"

#include <algorithm>
#include <cmath>

#include "common/check.h"
#include "server/guard/channel_rows.h"
#include "server/guard/dot.h"

namespace aerie {
namespace {

constexpr size_t kAlignmentChannels = 64;
// Below it rows are of an embedding or of nothing; how far below is no matter.
constexpr float kSmallestSize = 0.05f;
// Far from both ends of a direction its scale means nothing.
constexpr float kLowestPosition = -2.0f, kHighestPosition = 3.0f;

float ClipPosition(float position) {
  return std::clamp(position, kLowestPosition, kHighestPosition);
}

size_t LowestPlace(const GuardProfile& profile) {
  const auto depth = [](const GuardPlace& place) {
    return place.capture.kind == Capture::Kind::kBoundary ? place.capture.boundary : INT32_MAX;
  };
  const auto lowest =
      std::min_element(profile.places.begin(), profile.places.end(),
                       [&](const auto& a, const auto& b) { return depth(a) < depth(b); });
  return static_cast<size_t>(lowest - profile.places.begin());
}

// Standardises and clips `row` and adds it; returns the mean size of its values.
double AddRow(const GuardPlace& place, std::vector<float>& row, std::vector<float>& sum) {
  const size_t channels = row.size();
  float* at = row.data();
  float* to = sum.data();
  const float *center = place.center.data(), *scale = place.scale.data(), *size = place.size.data();
  constexpr size_t kLanes = 8;  // sums side by side, so that no addition waits for the last
  float sizes[kLanes] = {};
  const auto add = [&](size_t c, size_t lane) {
    sizes[lane] += std::min(std::abs(at[c]) / size[c], kLargestSize);
    at[c] = std::min(std::max((at[c] - center[c]) / scale[c], -kClip), kClip);
    to[c] += at[c];
  };
  size_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) add(c + lane, lane);
  }
  for (; c < channels; ++c) add(c, 0);
  float total = 0.0f;
  for (const float part : sizes) total += part;
  return double{total} / static_cast<double>(channels);
}

}  // namespace

NearestLandmark FindNearest(const GuardPlace& place, absl::Span<const float> positions, float size,
                            Landmarks among) {
  const size_t count = place.alternatives.size();
  AERIE_CHECK(positions.size() == count) << positions.size();
  std::optional<NearestLandmark> nearest;
  for (size_t landmark = among == Landmarks::kAll ? 0 : 1; landmark <= count; ++landmark) {
    // What cannot be told apart is no explanation.
    if (landmark > 0 && !place.alternatives[landmark - 1].told_apart) continue;
    const float* at = place.landmarks.data() + landmark * count;
    // A factor of two is as far as a place from its alternative.
    const float octaves = std::log2(std::max(size, kSmallestSize) /
                                    std::max(place.landmark_sizes[landmark], kSmallestSize));
    float sum = octaves * octaves;
    int64_t used = 1;
    for (size_t a = 0; a < count; ++a) {
      if (!place.alternatives[a].told_apart) continue;
      const float step = positions[a] - ClipPosition(at[a]);
      sum += step * step;
      ++used;
    }
    const float misfit = sum / static_cast<float>(used);
    if (!nearest.has_value() || misfit < nearest->misfit) nearest = {landmark, misfit};
  }
  return nearest.value_or(NearestLandmark());
}

RowSketch::RowSketch(const GuardProfile& profile)
    : profile_(profile),
      aligned_place_(LowestPlace(profile)),
      sum_(profile.places.size(), std::vector<float>(profile.channels.size())),
      size_(profile.places.size()),
      row_(profile.channels.size()),
      features_(std::min(profile.channels.size(), kAlignmentChannels)),
      alignment_(features_.size()) {}

void RowSketch::Add(const HiddenRows& rows, int64_t row, const std::optional<TokenKeys>& keys) {
  const size_t channels = row_.size();
  for (size_t i = 0; i < profile_.places.size(); ++i) {
    const GuardPlace& place = profile_.places[i];
    ReadChannels(rows, row, static_cast<int64_t>(i) * profile_.hidden_size, profile_.channels,
                 absl::MakeSpan(row_));
    size_[i] += AddRow(place, row_, sum_[i]);
    if (i == aligned_place_ && keys.has_value()) {
      const size_t count = features_.size();
      for (size_t f = 0; f < count; ++f) features_[f] = row_[f * channels / count];
      alignment_.Add(features_, *keys);
    }
  }
  ++count_;
}

void RowSketch::Merge(const RowSketch& other) {
  AERIE_CHECK(&profile_ == &other.profile_) << "sketches of two profiles";
  for (size_t i = 0; i < sum_.size(); ++i) {
    for (size_t c = 0; c < sum_[i].size(); ++c) sum_[i][c] += other.sum_[i][c];
    size_[i] += other.size_[i];
  }
  alignment_.Merge(other.alignment_);
  count_ += other.count_;
}

RowVote RowSketch::Take() {
  AERIE_CHECK(count_ > 0) << "a vote of no rows";
  RowVote vote;
  vote.rows = count_;
  const auto rows = static_cast<float>(count_);
  for (size_t i = 0; i < profile_.places.size(); ++i) {
    const GuardPlace& place = profile_.places[i];
    PlaceVote weighed;
    weighed.size = static_cast<float>(size_[i]) / rows;
    for (const GuardAlternative& alternative : place.alternatives) {
      const float along = LaneDot(alternative.weights.data(), sum_[i].data(), sum_[i].size());
      weighed.positions.push_back(ClipPosition(along / rows - alternative.offset));
    }
    weighed.misfit = FindNearest(place, weighed.positions, weighed.size, Landmarks::kAll).misfit;
    vote.places.push_back(std::move(weighed));
    std::fill(sum_[i].begin(), sum_[i].end(), 0.0f);
    size_[i] = 0.0;
  }
  vote.alignment = alignment_.Take();
  count_ = 0;
  return vote;
}

}  // namespace aerie
