// What the values of a place in a target look like, whatever the text: robust statistics by
// channel.
//
// The size of a row (its RMS) is blind: a few huge activations drown everything else, so rows of
// neighbouring boundaries may differ by a thousandth in it, and a final norm looks like an early
// layer. Where the values of each *channel* lie tells neighbours apart, since each channel counts
// the same.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/hidden_rows.h"

namespace aerie {

// Rows at the first positions carry activations that no later row has: targets park attention
// there. Fingerprints leave them out.
inline constexpr int64_t kFirstTypicalPosition = 4;

struct Fingerprint {
  static constexpr std::array<float, 5> kLevels = {0.1f, 0.25f, 0.5f, 0.75f, 0.9f};

  int32_t width = 0;              // of the rows
  std::vector<int32_t> channels;  // ascending: those that are described
  std::vector<float> quantiles;   // [levels, channels]: of the channel's values
  std::vector<float> row_rms;     // [levels]: quantiles of the rows' RMS; for people, see above
  int64_t rows = 0;               // it was made from

  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

// At most `most` channels of 0..width-1, spread evenly.
std::vector<int32_t> SpreadChannels(int32_t width, int32_t most);

// Of `values`, [rows, width], rows >= 1, all finite.
Fingerprint MakeFingerprint(absl::Span<const float> values, int32_t width,
                            std::vector<int32_t> channels);

// Compares rows with a fingerprint as they come, at a fixed cost a row and in fixed memory. The
// fingerprint must outlive it. One thread at a time.
class FingerprintCounter {
 public:
  explicit FingerprintCounter(const Fingerprint& fingerprint);

  // One row, [width].
  void Add(absl::Span<const float> row);
  void Clear();
  int64_t rows() const { return rows_; }

  // How far the rows are from the fingerprint: the share of a channel's values that lie below its
  // quantile of a level, less the level, absolute, averaged over channels and levels. 0: alike;
  // rows of the same place in other texts come to some hundredths; 0.5 is the most. Needs a row.
  // Compare it between fingerprints of several places, not with a constant.
  double Distance() const;

 private:
  const Fingerprint& fingerprint_;
  std::vector<float> row_;        // [channels], scratch
  std::vector<int32_t> doubled_;  // [levels, channels]: 2 a value below the quantile, 1 at it
  int64_t rows_ = 0;
};

}  // namespace aerie
