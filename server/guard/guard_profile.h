// What rows of every capture of a target look like: the part of a measured wiring that a running
// server compares incoming rows with.
//
// It holds no typical values to be far from. Rows of another kind of text are farther from those of
// the recording than rows of the next layer are, so a distance tells nothing. What is kept are
// *directions*: for each capture of the wiring (a place) and each other capture (an alternative)
// the direction in which the two differ, weighed against how rows of one place vary (Fisher's
// linear discriminant). Along it, rows of the place lie at 0 and rows of the alternative at 1,
// whatever the text.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/wiring.h"

namespace aerie {

// Targets park huge activations at the first positions, which hide everything else.
inline constexpr int64_t kFirstComparedPosition = 4;

// Values beyond it count as it, in units of the channel's own spread: one wild channel must not
// outvote the others.
inline constexpr float kClip = 4.0f;
inline constexpr float kLargestSize = 4.0f;

struct GuardAlternative {
  Capture capture;
  // Of the rows' standardised channels: position = weights * channels - offset.
  std::vector<float> weights;  // [channels]
  float offset = 0.0f;
  // Whether rows that the directions were not made from fell on the right side.
  bool told_apart = false;
};

struct GuardPlace {
  Capture capture;  // the declared one
  // Of each channel: median, spread (scaled median deviation, > 0) and mean size (> 0).
  std::vector<float> center, scale, size;
  // Root mean square of whole rows, > 0. For the eye: it tells no layer from the next.
  double rms = 0.0;
  std::vector<GuardAlternative> alternatives;
  // [1 + alternatives, alternatives]: where rows of the place (row 0) and of each alternative lie
  // along every direction. An unknown capture is named by the row it is nearest to.
  std::vector<float> landmarks;
  // [1 + alternatives]: their mean size by channel over that of the place, each value counted as
  // kLargestSize at most. 1 for the place, about 1 for its neighbours.
  std::vector<float> landmark_sizes;
};

// What the recording says of drafts. Index 0 is depth 1.
struct DraftingExpectation {
  double accuracy = 0.0;  // of depth 1, fed the true tokens
  double log_likelihood = 0.0;
  std::vector<double> acceptance;  // share of chains that are right up to this depth

  double AcceptLength() const;
};

// Immutable once made; threads may share it.
struct GuardProfile {
  int32_t hidden_size = 0;         // of the target
  std::vector<int32_t> channels;   // ascending, the same for all captures
  std::vector<GuardPlace> places;  // in wiring order
  int64_t rows = 0;                // that it was made from
  int32_t sequences = 0;
  std::optional<DraftingExpectation> expectation;

  // INVALID_ARGUMENT unless all sizes agree and all numbers are finite.
  absl::Status Validate() const;
};

}  // namespace aerie
