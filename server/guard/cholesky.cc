#include "server/guard/cholesky.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "server/guard/dot.h"

namespace aerie {

absl::StatusOr<Cholesky> Cholesky::Factor(std::vector<float> matrix, int64_t n) {
  AERIE_CHECK(static_cast<int64_t>(matrix.size()) == n * n) << matrix.size();
  float* at = matrix.data();
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < i; ++j) {
      at[i * n + j] =
          (at[i * n + j] - LaneDot(at + i * n, at + j * n, static_cast<size_t>(j))) / at[j * n + j];
    }
    const float rest = at[i * n + i] - LaneDot(at + i * n, at + i * n, static_cast<size_t>(i));
    if (!(rest > 0.0f)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a covariance is not positive definite at channel ", i,
                       "; expected rows that vary in every direction; record more of them"));
    }
    at[i * n + i] = std::sqrt(rest);
  }
  return Cholesky(std::move(matrix), n);
}

std::vector<float> Cholesky::Solve(absl::Span<const float> right) const {
  AERIE_CHECK(static_cast<int64_t>(right.size()) == n_) << right.size();
  std::vector<float> x(right.begin(), right.end());
  const auto at = [this](int64_t i, int64_t j) { return lower_[static_cast<size_t>(i * n_ + j)]; };
  const auto size = static_cast<size_t>(n_);
  for (int64_t i = 0; i < n_; ++i) {
    const float below = LaneDot(lower_.data() + i * n_, x.data(), static_cast<size_t>(i));
    x[static_cast<size_t>(i)] = (x[static_cast<size_t>(i)] - below) / at(i, i);
  }
  for (size_t i = size; i-- > 0;) {
    x[i] /= lower_[i * size + i];
    for (size_t j = 0; j < i; ++j) x[j] -= lower_[i * size + j] * x[i];
  }
  return x;
}

}  // namespace aerie
