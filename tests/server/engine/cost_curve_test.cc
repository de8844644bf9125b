#include "server/engine/cost_curve.h"

#include <initializer_list>

#include "gtest/gtest.h"

namespace aerie {
namespace {

void ObserveAll(std::initializer_list<std::pair<int32_t, double>> costs, CostCurve* curve) {
  for (int time = 0; time < 10; ++time) {
    for (const auto& [k, cost] : costs) curve->Observe(k, cost);
  }
}

TEST(RecentAverageTest, IsTheMeanOfTheFirstMeasurements) {
  RecentAverage average;
  EXPECT_FALSE(average.known());
  for (const double value : {1.0, 1.2, 1.4}) average.Add(value);
  EXPECT_TRUE(average.known());
  EXPECT_DOUBLE_EQ(average.value(), 1.2);
}

TEST(RecentAverageTest, CountsAHiccupOnlyInPart) {
  RecentAverage average;
  for (int i = 0; i < 100; ++i) average.Add(1);
  EXPECT_FALSE(average.Add(50));
  EXPECT_NEAR(average.value(), 1.025, 1e-9);
  EXPECT_FALSE(average.Add(1));
  EXPECT_FALSE(average.Add(50));
  EXPECT_LT(average.value(), 1.06);
}

TEST(RecentAverageTest, BeginsAnewWhenTwoMeasurementsInARowAreFarOff) {
  for (const double later : {4.0, 0.1}) {
    RecentAverage average;
    for (int i = 0; i < 100; ++i) average.Add(1);
    average.Add(later);
    EXPECT_TRUE(average.Add(later));
    EXPECT_DOUBLE_EQ(average.value(), later);
  }
}

TEST(RecentAverageTest, TwoHiccupsInOppositeDirectionsAreNoChange) {
  RecentAverage average;
  for (int i = 0; i < 100; ++i) average.Add(1);
  average.Add(4);
  EXPECT_FALSE(average.Add(0.1));
  EXPECT_NEAR(average.value(), 1, 0.03);
}

TEST(RecentAverageTest, FollowsAfterMeasurementsOfNothing) {
  RecentAverage average;
  for (int i = 0; i < 10; ++i) average.Add(0);
  for (int i = 0; i < 100; ++i) average.Add(2);
  EXPECT_NEAR(average.value(), 2, 0.1);
}

TEST(CostCurveTest, IsFlatAsLongAsOnePlaceWasMeasured) {
  CostCurve curve;
  EXPECT_EQ(curve.places(), 0);
  ObserveAll({{4, 3.0}}, &curve);
  EXPECT_EQ(curve.places(), 1);
  for (const int32_t k : {0, 4, 128}) EXPECT_NEAR(curve.At(k), 3.0, 1e-9);
}

TEST(CostCurveTest, FindsALineFromItsEnds) {
  CostCurve curve;
  ObserveAll({{0, 2.0}, {16, 10.0}}, &curve);
  EXPECT_TRUE(curve.Measured(16));
  EXPECT_FALSE(curve.Measured(8));
  for (int32_t k = 0; k <= 16; ++k) EXPECT_NEAR(curve.At(k), 2.0 + 0.5 * k, 0.4) << k;
}

TEST(CostCurveTest, KeepsAKnee) {
  CostCurve curve;
  ObserveAll({{0, 2.0}, {2, 2.0}, {4, 2.0}, {6, 4.0}, {8, 6.0}}, &curve);
  EXPECT_NEAR(curve.At(0), 2, 0.2);
  EXPECT_NEAR(curve.At(2), 2, 0.2);
  EXPECT_NEAR(curve.At(8), 6, 0.3);
  EXPECT_NEAR(curve.At(7), 5, 0.3);
}

TEST(CostCurveTest, NeverPointsBelowEverythingByMuch) {
  CostCurve curve;
  ObserveAll({{7, 10.0}, {8, 20.0}}, &curve);
  EXPECT_GE(curve.At(0), 2.5);
}

// What was measured elsewhere belongs to the time before: the next measurement there counts in
// full.
TEST(CostCurveTest, AChangeAtOnePlaceCastsDoubtOnTheOthers) {
  CostCurve curve;
  ObserveAll({{0, 2.0}, {8, 2.0}}, &curve);
  curve.Observe(0, 20);
  curve.Observe(0, 20);
  curve.Observe(8, 30);
  EXPECT_NEAR(curve.At(0), 20, 1);
  EXPECT_GT(curve.At(8), 15);
}

}  // namespace
}  // namespace aerie
