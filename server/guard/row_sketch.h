// What sampled rows of one session look like, in fixed memory and at a fixed cost a row.
//
// Rows are summed by channel, and the sums are weighed against all alternatives only once a vote is
// taken: directions are linear, so that says the same as weighing every row and costs a
// fraction.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "common/hidden_rows.h"
#include "server/guard/guard_profile.h"
#include "server/guard/token_alignment.h"

namespace aerie {

// Rows of one place, weighed.
struct PlaceVote {
  std::vector<float> positions;  // [alternatives], 0: declared, 1: alternative; clipped
  float size = 0.0f;             // of the values over those of the recording; 1: alike, at most 4
  float misfit = 0.0f;           // mean squared distance to the nearest landmark
};

// Some rows of one session, weighed together.
struct RowVote {
  int64_t session = 0;
  int64_t rows = 0;
  std::vector<PlaceVote> places;
  AlignmentSums alignment;
};

enum class Landmarks { kAll, kAlternatives };

// The landmark nearest to `positions`: 0 for the declared capture, 1 + i for alternative i.
struct NearestLandmark {
  size_t landmark = 0;
  float misfit = 0.0f;  // mean squared distance, sizes counted as one more direction
};
NearestLandmark FindNearest(const GuardPlace& place, absl::Span<const float> positions, float size,
                            Landmarks among);

// Engine thread only.
class RowSketch {
 public:
  // `profile` must outlive it.
  explicit RowSketch(const GuardProfile& profile);

  // `keys`: absent when the tokens in front of the row are not known.
  void Add(const HiddenRows& rows, int64_t row, const std::optional<TokenKeys>& keys);
  int64_t rows() const { return count_; }

  // Adds what another sketch has summed up since its last vote.
  void Merge(const RowSketch& other);

  // Weighs the rows since the last vote, at least one, and forgets them.
  RowVote Take();

 private:
  const GuardProfile& profile_;
  size_t aligned_place_ = 0;             // whose rows tell the token best: the lowest
  std::vector<std::vector<float>> sum_;  // [places][channels], standardised and clipped
  std::vector<double> size_;             // [places]
  std::vector<float> row_, features_;    // scratch
  TokenAlignment alignment_;
  int64_t count_ = 0;
};

}  // namespace aerie
