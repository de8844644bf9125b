// Solves symmetric positive definite systems: what the directions of a profile come from.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace aerie {

class Cholesky {
 public:
  // `matrix` is [n, n], row-major; only its lower half is read. INVALID_ARGUMENT unless it is
  // positive definite.
  static absl::StatusOr<Cholesky> Factor(std::vector<float> matrix, int64_t n);

  // x with matrix * x = `right`, [n].
  std::vector<float> Solve(absl::Span<const float> right) const;

 private:
  Cholesky(std::vector<float> lower, int64_t n) : lower_(std::move(lower)), n_(n) {}
  std::vector<float> lower_;  // [n, n]; above the diagonal: left over
  int64_t n_;
};

}  // namespace aerie
