#include "server/verify/student_t.h"

#include <cmath>

#include "common/check.h"

namespace aerie {
namespace {

// The continued fraction of the regularised incomplete beta function, by Lentz's method. Converges
// fast for x < (a + 1) / (a + b + 2).
double BetaFraction(double a, double b, double x) {
  constexpr int kMaxTerms = 500;
  constexpr double kTiny = 1e-300;
  constexpr double kEpsilon = 1e-15;
  const auto away_from_zero = [](double v) { return std::abs(v) < kTiny ? kTiny : v; };
  double c = 1.0;
  double d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
  double result = d;
  for (int m = 1; m <= kMaxTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double factor = 1.0;
    for (const double term : {even, odd}) {
      d = 1.0 / away_from_zero(1.0 + term * d);
      c = away_from_zero(1.0 + term / c);
      factor = c * d;
      result *= factor;
    }
    if (std::abs(factor - 1.0) < kEpsilon) break;
  }
  return result;
}

// I_x(a, b).
double IncompleteBeta(double a, double b, double x) {
  if (x <= 0.0) return 0.0;
  if (x >= 1.0) return 1.0;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1.0) / (a + b + 2.0)) return front * BetaFraction(a, b, x) / a;
  return 1.0 - front * BetaFraction(b, a, 1.0 - x) / b;
}

}  // namespace

double TwoSidedP(double t, double degrees) {
  AERIE_CHECK(degrees >= 1.0);
  if (std::isnan(t)) return 1.0;
  if (std::isinf(t)) return 0.0;
  return IncompleteBeta(degrees / 2.0, 0.5, degrees / (degrees + t * t));
}

double TwoSidedQuantile(double p, double degrees) {
  AERIE_CHECK(p > 0.0 && p < 1.0);
  double low = 0.0;
  double high = 1.0;
  while (TwoSidedP(high, degrees) > p) high *= 2.0;
  for (int i = 0; i < 200; ++i) {
    const double middle = 0.5 * (low + high);
    (TwoSidedP(middle, degrees) > p ? low : high) = middle;
  }
  return high;
}

}  // namespace aerie
