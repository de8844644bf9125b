// The two ways to measure how far tensors of two recordings are apart; match.cc draws conclusions.
#pragma once

#include <cstdint>
#include <vector>

#include "server/recording/common_rows.h"
#include "server/recording/recording.h"

namespace aerie {

// [tensors of A, tensors of B]: the median over `pairs` of RowDistance between row p of A and row
// p + shift of B. Pairs whose shifted row does not exist are left out; 2 where none is left.
std::vector<std::vector<double>> RowDistances(const Recording& a, const Recording& b,
                                              const std::vector<RowPair>& pairs, int32_t shift);

struct FingerprintDistances {
  static constexpr size_t kParts = 4;
  int64_t rows = 0;                                     // of A that were compared
  std::vector<std::vector<double>> all;                 // [tensors of A, tensors of B]
  std::vector<std::vector<std::vector<double>>> parts;  // [kParts] of the same, on disjoint rows
};
// Rows of A against fingerprints of B, overall and in parts: by samples where there are enough of
// them, since rows of one text are not independent. No rows, no parts: A is too short.
FingerprintDistances CompareFingerprints(const Recording& a, const Recording& b);

}  // namespace aerie
