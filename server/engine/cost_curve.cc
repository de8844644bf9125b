#include "server/engine/cost_curve.h"

#include <algorithm>
#include <cmath>

#include "common/check.h"

namespace aerie {
namespace {

// What was measured at one k loses so much weight with every measurement at another.
constexpr double kKept = 0.99;
// But not below so many measurements: better an old one than a line from far away.
constexpr double kLeastWeight = 0.05;
// And so much when the measurements at another show that everything changed.
constexpr double kKeptAtChange = 0.1;
// How far from k a measurement counts half.
constexpr double kReach = 0.7;
// Pulls a slope of which little is known towards 0.
constexpr double kFlatness = 0.2;
// A line may point below anything that was measured, but not this far.
constexpr double kLeastPart = 0.25;
// Below so many measurements there is no telling what is usual.
constexpr double kUsual = 3;

}  // namespace

bool RecentAverage::Add(double value) {
  bool begins_anew = false;
  if (weight_ >= kUsual) {
    const int surprise = value > value_ * kUsualFactor ? 1 : value < value_ / kUsualFactor ? -1 : 0;
    begins_anew = surprise != 0 && surprise == surprise_;
    if (begins_anew) {
      weight_ = 0;
    } else if (surprise != 0) {
      value = surprise > 0 ? value_ * kUsualFactor : value_ / kUsualFactor;
    }
    surprise_ = surprise;
  }
  weight_ = std::min(weight_ + 1, kMemory);
  value_ += (value - value_) / weight_;
  return begins_anew;
}

void RecentAverage::Forget(double kept, double least) {
  weight_ = std::max(weight_ * kept, std::min(weight_, least));
}

void CostCurve::Observe(int32_t k, double cost) {
  AERIE_CHECK(k >= 0 && cost >= 0) << "cost " << cost << " at " << k;
  averages_.resize(std::max(averages_.size(), static_cast<size_t>(k) + 1));
  if (!Measured(k)) ++places_;
  RecentAverage& measured = averages_[static_cast<size_t>(k)];
  const bool changed = measured.Add(cost);
  for (RecentAverage& average : averages_) {
    if (&average != &measured)
      changed ? average.Forget(kKeptAtChange, 0) : average.Forget(kKept, kLeastWeight);
  }
}

bool CostCurve::Measured(int32_t k) const {
  const auto place = static_cast<size_t>(k);
  return place < averages_.size() && averages_[place].known();
}

double CostCurve::At(int32_t k) const {
  AERIE_CHECK(places_ > 0) << "no cost was measured";
  // Weighted least squares for cost = c + slope * (place - k); c is the answer.
  double weights = 0, places = 0, squares = kFlatness, costs = 0, products = 0;
  double least = INFINITY;
  for (size_t i = 0; i < averages_.size(); ++i) {
    if (!averages_[i].known()) continue;
    const double distance = static_cast<double>(i) - k;
    const double weight = averages_[i].weight() / (1 + distance * distance / (kReach * kReach));
    const double cost = averages_[i].value();
    weights += weight;
    places += weight * distance;
    squares += weight * distance * distance;
    costs += weight * cost;
    products += weight * distance * cost;
    least = std::min(least, cost);
  }
  const double value =
      (squares * costs - places * products) / (squares * weights - places * places);
  return std::max(value, kLeastPart * least);
}

}  // namespace aerie
