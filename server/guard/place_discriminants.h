// The directions that tell the rows of one place from those of its alternatives.
//
// A direction is made from some of the texts and measured on the others: with hundreds of channels,
// those that it was made from always lie apart.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/wiring.h"
#include "server/guard/guard_profile.h"

namespace aerie {

inline constexpr int32_t kFolds = 3;

class PlaceDiscriminants {
 public:
  // `values` is [rows, channels] of the declared capture; `groups` says of each row which text it
  // is from, ascending from 0.
  PlaceDiscriminants(const Capture& declared, std::vector<float> values,
                     absl::Span<const int32_t> groups);

  // The same rows at another capture.
  void Add(const Capture& alternative, std::vector<float> values);

  // Of everything added. INVALID_ARGUMENT when the rows do not vary.
  absl::StatusOr<GuardPlace> Make() const;

 private:
  // Sums over standardised rows of one capture.
  struct Sums {
    std::vector<double> first;               // [groups, channels]
    std::vector<std::vector<float>> second;  // [folds][channels, channels], lower half; or empty
  };
  struct Directions {
    std::vector<float> origin;                // [channels]: the mean of the place
    std::vector<std::vector<float>> weights;  // [alternatives][channels]
  };
  using UsedFolds = std::vector<bool>;

  float SizeOf(const std::vector<float>& values) const;
  Sums SumUp(std::vector<float> values, bool second) const;
  std::vector<float> Mean(const Sums& sums, const UsedFolds& folds) const;
  std::vector<float> GroupMean(const Sums& sums, size_t group) const;
  void AddCovariance(const Sums& sums, const UsedFolds& folds, std::vector<float>& matrix) const;
  absl::StatusOr<Directions> Solve(const UsedFolds& folds) const;
  int64_t Rows(const UsedFolds& folds) const;
  size_t FoldOf(size_t group) const { return group % size_t{kFolds}; }

  size_t channels_ = 0;
  absl::Span<const int32_t> groups_;  // of each row
  std::vector<int64_t> group_rows_;   // [groups]
  GuardPlace place_;                  // its statistics; alternatives carry captures alone
  std::vector<float> sizes_;          // of the place and the others
  Sums own_;
  std::vector<Sums> others_;
  std::vector<size_t> near_;  // of others_: the neighbours, which share the covariance
};

}  // namespace aerie
