// Do the tokens belong to the states? Told without a model and without a profile of tokens.
//
// The state of a position carries its own token more than anything else, at low boundaries above
// all. So two rows whose states belong to one token resemble each other, and two rows that merely
// share some other token do not. Row p brings the token x_{p+1}, its state is that of x_p: the rows
// to resemble each other are those with equal tokens *in front* of theirs. If rows with equal
// tokens of their own do instead, the worker's tokens lag by one.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace aerie {

// Which token of the stream a state is compared by: that of the row, the one before it (the right
// one), the one before that.
inline constexpr size_t kAlignments = 3;
inline constexpr size_t kRightAlignment = 1;

// The token of a row and the two in front of it.
using TokenKeys = std::array<int32_t, kAlignments>;

// Sums of distances over pairs of rows.
struct AlignmentSums {
  std::array<double, kAlignments> distance{};  // of pairs with the one equal token, and no other
  std::array<int64_t, kAlignments> pairs{};
  double any_distance = 0.0;  // of pairs without an equal token
  int64_t any_pairs = 0;

  void Add(const AlignmentSums& other);
  // Mean distance of pairs over that of any pairs; 1 where there is none.
  double Ratio(size_t alignment) const;
  int64_t ScarcestPairs() const;
};

// Rows of one session as they come. Engine thread only.
class TokenAlignment {
 public:
  explicit TokenAlignment(size_t features) : features_(features) {}

  // `row` is [features], of one scale. Compares it with rows before it.
  void Add(absl::Span<const float> row, const TokenKeys& keys);

  // Adds what another one has found since its last Take(); its rows are of another session and are
  // not compared.
  void Merge(const TokenAlignment& other) { sums_.Add(other.sums_); }

  // What was found since the last call.
  AlignmentSums Take();

 private:
  static constexpr size_t kKept = 64;  // rows to compare with

  float Distance(absl::Span<const float> row, size_t kept) const;

  size_t features_;
  std::vector<float> rows_;  // [kKept, features], a ring
  std::vector<TokenKeys> keys_;
  size_t next_ = 0;
  AlignmentSums sums_;
};

}  // namespace aerie
