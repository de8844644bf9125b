#include "tests/testing/chi_square.h"

#include <cmath>

#include "common/check.h"

namespace aerie {
namespace {

constexpr double kLeastExpected = 5;
constexpr double kPrecision = 1e-14;

// The regularised incomplete gamma function P(a, x), by its power series: for x < a + 1.
double LowerGamma(double a, double x) {
  double term = 1 / a;
  double sum = term;
  for (double n = a + 1; term > sum * kPrecision; ++n) {
    term *= x / n;
    sum += term;
  }
  return sum * std::exp(a * std::log(x) - x - std::lgamma(a));
}

// Q(a, x) = 1 - P(a, x), by its continued fraction: for x >= a + 1. Convergents are evaluated from
// the back with twice the terms until two agree.
double UpperGamma(double a, double x) {
  double last = 0;
  for (int terms = 16; terms <= 1 << 16; terms *= 2) {
    double tail = 0;
    for (int n = terms; n >= 1; --n) tail = n * (n - a) / (x + 2 * n + 1 - a - tail);
    const double value = 1 / (x + 1 - a - tail);
    if (std::abs(value - last) <= kPrecision * value) break;
    last = value;
  }
  return last * std::exp(a * std::log(x) - x - std::lgamma(a));
}

}  // namespace

double ChiSquareTail(double statistic, int degrees) {
  AERIE_CHECK(degrees >= 1 && statistic >= 0);
  if (statistic == 0) return 1;
  const double a = degrees / 2.0;
  const double x = statistic / 2;
  return x < a + 1 ? 1 - LowerGamma(a, x) : UpperGamma(a, x);
}

ChiSquare TestAgainst(absl::Span<const int64_t> counts, absl::Span<const double> probs) {
  AERIE_CHECK(counts.size() == probs.size());
  ChiSquare test;
  for (const int64_t count : counts) test.samples += count;
  const auto total = static_cast<double>(test.samples);
  int cells = 0;
  double pooled_count = 0;
  double pooled_expected = 0;
  bool impossible = false;
  const auto add = [&](double count, double expected) {
    test.statistic += (count - expected) * (count - expected) / expected;
    ++cells;
  };
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = total * probs[i];
    const auto count = static_cast<double>(counts[i]);
    if (expected >= kLeastExpected) {
      add(count, expected);
    } else {
      impossible |= probs[i] == 0 && counts[i] > 0;
      pooled_count += count;
      pooled_expected += expected;
    }
  }
  if (pooled_expected > 0) add(pooled_count, pooled_expected);
  test.degrees = cells - 1;
  test.p_value = impossible ? 0 : ChiSquareTail(test.statistic, test.degrees);
  return test;
}

}  // namespace aerie
