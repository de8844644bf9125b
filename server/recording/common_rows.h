// Rows of two recordings that must be equal if they were taken at one place: those whose tokens are
// the same from the start of the text up to them.
//
// Texts need not be the same for that: every chat begins with the same template, and a causal
// target gives the same states for it each time.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/recording/recording.h"

namespace aerie {

struct RowPair {
  size_t a_sample = 0, b_sample = 0;
  int64_t position = 0;  // of both
};

// Each prefix once, at most `most` pairs, spread evenly over all. Position 0 is left out: the state
// there is much the same at half of a target's boundaries.
std::vector<RowPair> CommonRows(const Recording& a, const Recording& b, size_t most);

// How far two rows are apart: the median over channels of the difference, over that of the values.
// Medians, since a few huge channels would hide all others. 0: equal; a thousandth: rounding to
// bfloat16; some hundredths: another engine in bfloat16; 1 and more: rows of unrelated places.
// Rows are of one width. Both are changed.
double RowDistance(absl::Span<float> a, absl::Span<float> b);

}  // namespace aerie
