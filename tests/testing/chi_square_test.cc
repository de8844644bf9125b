#include "tests/testing/chi_square.h"

#include <cmath>

#include "gtest/gtest.h"

namespace aerie {
namespace {

struct TailCase {
  double statistic;
  int degrees;
  double tail;
};

class ChiSquareTailTest : public ::testing::TestWithParam<TailCase> {};

// From printed tables, and exp(-x / 2) for two degrees.
TEST_P(ChiSquareTailTest, AgreesWithTheTables) {
  const TailCase& c = GetParam();
  EXPECT_NEAR(ChiSquareTail(c.statistic, c.degrees) / c.tail, 1, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Cases, ChiSquareTailTest,
                         ::testing::Values(TailCase{3.841459, 1, 0.05}, TailCase{29.5883, 10, 1e-3},
                                           TailCase{124.3421, 100, 0.05},
                                           TailCase{77.92947, 100, 0.95}, TailCase{0, 7, 1},
                                           TailCase{1, 2, std::exp(-0.5)},
                                           TailCase{60, 2, std::exp(-30)}));

TEST(ChiSquareTest, AddsUpTheCells) {
  const ChiSquare test = TestAgainst({30, 70, 100}, {0.2, 0.3, 0.5});
  EXPECT_DOUBLE_EQ(test.statistic, 100. / 40 + 100. / 60);
  EXPECT_EQ(test.degrees, 2);
  EXPECT_EQ(test.samples, 200);
}

TEST(ChiSquareTest, PoolsCellsThatExpectFewSamples) {
  const ChiSquare test = TestAgainst({98, 1, 1}, {0.98, 0.01, 0.01});
  EXPECT_EQ(test.degrees, 1);
  EXPECT_EQ(test.statistic, 0);
}

TEST(ChiSquareTest, AnImpossibleSampleIsNeverForgiven) {
  EXPECT_EQ(TestAgainst({99999, 100000, 1}, {0.5, 0.5, 0}).p_value, 0);
}

}  // namespace
}  // namespace aerie
