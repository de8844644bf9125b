#include "server/verify/statistics.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace aerie {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

constexpr float kOutside = -std::numeric_limits<float>::infinity();

RowPlan PlanOf(const std::vector<int64_t>& counts) {
  RowPlan plan;
  for (size_t i = 0; i < counts.size(); ++i) {
    plan.ranges.push_back({static_cast<int32_t>(i), 1, counts[i]});
  }
  return plan;
}

PairedTest TestWith(double difference, double standard_error, double p, int32_t sequences = 20) {
  PairedTest test;
  test.difference = difference;
  test.standard_error = standard_error;
  test.t = difference / standard_error;
  test.p_value = test.p_adjusted = p;
  test.rows = 1000;
  test.sequences = sequences;
  return test;
}

TEST(ComparePairedTest, IsTheTestOfMeansWhenSequencesAreEquallyLong) {
  // Means of the sequences: -1, 0, ..., 7; mean 3, standard error sqrt(7.5 / 9).
  std::vector<float> reference;
  for (int s = 0; s < 9; ++s) reference.insert(reference.end(), 2, static_cast<float>(s - 1));
  const std::vector<float> other(18, 0.0f);
  const PairedTest test = ComparePaired(PlanOf(std::vector<int64_t>(9, 2)), reference, other);
  EXPECT_DOUBLE_EQ(test.difference, 3.0);
  EXPECT_NEAR(test.standard_error, std::sqrt(7.5 / 9), 1e-9);
  EXPECT_NEAR(test.t, 3.0 / std::sqrt(7.5 / 9), 1e-9);
  EXPECT_NEAR(test.p_value, 0.0111, 1e-4);
  EXPECT_EQ(test.rows, 18);
  EXPECT_EQ(test.sequences, 9);
}

TEST(ComparePairedTest, DoesNotTakeRowsOfOneTextForIndependentOnes) {
  const std::vector<float> few = {1, -0.5f, 2, 0.5f, 1, 0.8f, 1.5f, 0.1f};
  std::vector<float> many;
  for (const float value : few) many.insert(many.end(), 100, value);
  const PairedTest once =
      ComparePaired(PlanOf(std::vector<int64_t>(8, 1)), few, std::vector<float>(8, 0.0f));
  const PairedTest repeated =
      ComparePaired(PlanOf(std::vector<int64_t>(8, 100)), many, std::vector<float>(800, 0.0f));
  EXPECT_NEAR(once.standard_error, repeated.standard_error, 1e-9);
  EXPECT_NEAR(once.p_value, repeated.p_value, 1e-9);
}

TEST(ComparePairedTest, LeavesOutRowsOutsideTheDraftVocabulary) {
  const std::vector<float> reference = {1, kOutside, 2, 3, 4, 5, 6};
  const std::vector<float> other = {0, kOutside, 0, 0, 0, 0, 0};
  const PairedTest test = ComparePaired(PlanOf({2, 1, 1, 1, 1, 1}), reference, other);
  EXPECT_EQ(test.rows, 6);
  EXPECT_DOUBLE_EQ(test.difference, 3.5);
}

TEST(ComparePairedTest, DecidesNothingOnFewSequences) {
  const PairedTest test = ComparePaired(PlanOf({1, 1, 1, 1}), std::vector<float>{5, 5, 5, 5.1f},
                                        std::vector<float>{0, 0, 0, 0});
  EXPECT_DOUBLE_EQ(test.p_value, 1.0);
  EXPECT_EQ(StandingOf(test, {}), Standing::kOpen);
}

TEST(ComparePairedTest, IsSureOfADifferenceThatNeverVaries) {
  const PairedTest test = ComparePaired(PlanOf(std::vector<int64_t>(8, 1)),
                                        std::vector<float>(8, 1.0f), std::vector<float>(8, 0.5f));
  EXPECT_DOUBLE_EQ(test.p_value, 0.0);
  const PairedTest same = ComparePaired(PlanOf(std::vector<int64_t>(8, 1)),
                                        std::vector<float>(8, 1.0f), std::vector<float>(8, 1.0f));
  EXPECT_DOUBLE_EQ(same.p_value, 1.0);
}

TEST(AdjustByHolmTest, StepsDownAndNeverTurnsBack) {
  std::vector<PairedTest> tests(4);
  const double p[] = {0.01, 0.04, 0.03, 0.005};
  std::vector<PairedTest*> pointers;
  for (int i = 0; i < 4; ++i) {
    tests[i].p_value = p[i];
    pointers.push_back(&tests[i]);
  }
  AdjustByHolm(pointers);
  std::vector<double> adjusted;
  for (const PairedTest& test : tests) adjusted.push_back(test.p_adjusted);
  EXPECT_THAT(adjusted, ElementsAre(DoubleNear(0.03, 1e-12), DoubleNear(0.06, 1e-12),
                                    DoubleNear(0.06, 1e-12), DoubleNear(0.02, 1e-12)));
}

TEST(StandingOfTest, FollowsSignificanceAndMargin) {
  const StatisticsOptions options{.alpha = 0.01, .margin = 0.02};
  struct Case {
    const char* what;
    PairedTest test;
    Standing expected;
  };
  const Case cases[] = {
      {"far worse", TestWith(1.0, 0.1, 1e-6), Standing::kExcluded},
      {"worse by little, but surely", TestWith(0.005, 0.0005, 1e-6), Standing::kExcluded},
      {"far better", TestWith(-1.0, 0.1, 1e-6), Standing::kBetter},
      {"better by little, surely", TestWith(-0.005, 0.0005, 1e-6), Standing::kEquivalent},
      {"no difference, narrow", TestWith(0.001, 0.002, 0.6), Standing::kEquivalent},
      {"no difference, wide", TestWith(0.001, 0.05, 0.98), Standing::kOpen},
      {"better by chance", TestWith(-0.1, 0.06, 0.1), Standing::kOpen},
      {"surely better, perhaps within the margin", TestWith(-0.019, 0.003, 1e-5), Standing::kOpen},
      {"not a number", TestWith(std::nan(""), 0.1, 1.0), Standing::kOpen},
      {"too few sequences", TestWith(1.0, 0.1, 1e-6, kMinSequences - 1), Standing::kOpen},
  };
  for (const Case& c : cases) EXPECT_EQ(StandingOf(c.test, options), c.expected) << c.what;
}

TEST(RowsForThreeSigmaTest, GrowWithTheSquareOfTheError) {
  EXPECT_EQ(RowsForThreeSigma(TestWith(0.1, 0.1, 0.3)), 9000);
  EXPECT_EQ(RowsForThreeSigma(TestWith(-0.1, 0.2, 0.6)), 36000);
  EXPECT_EQ(RowsForThreeSigma(TestWith(0.0, 0.2, 1.0)), std::nullopt);
}

TEST(RowsToSettleTest, AreThoseOfTheQuickerAnswer) {
  const StatisticsOptions options{.alpha = 0.01, .margin = 0.02};
  // Told apart at 9e6 rows, equivalent much sooner.
  const auto alike = RowsToSettle(TestWith(0.0001, 0.01, 0.99), options);
  ASSERT_TRUE(alike.has_value());
  EXPECT_LT(*alike, 1100);
  EXPECT_EQ(RowsToSettle(TestWith(0.1, 0.1, 0.3), options), 9000);
}

// What a pair of candidates without a difference looks like: noise by row and by text.
std::vector<float> NoiseOf(const RowPlan& plan, double by_text, std::mt19937& random) {
  std::normal_distribution<double> normal;
  std::vector<float> rows;
  for (const RowRange& range : plan.ranges) {
    const double text = by_text * normal(random);
    for (int64_t i = 0; i < range.count; ++i) {
      rows.push_back(static_cast<float>(text + normal(random)));
    }
  }
  return rows;
}

TEST(ComparePairedTest, RaisesNoMoreFalseAlarmsThanItSays) {
  std::mt19937 random(3);
  const RowPlan plan = PlanOf({40, 10, 60, 35, 80, 20, 50, 45});
  const std::vector<float> zero(plan.rows(), 0.0f);
  int alarms = 0;
  constexpr int kTrials = 4000;
  for (int i = 0; i < kTrials; ++i) {
    alarms += ComparePaired(plan, NoiseOf(plan, 0.5, random), zero).p_value < 0.05 ? 1 : 0;
  }
  // 5 % of them; three standard errors of that are 1 %. Row by row it would be above 40 %.
  EXPECT_LT(alarms, kTrials * 0.062);
  EXPECT_GT(alarms, kTrials * 0.03);
}

TEST(ComparePairedTest, FindsADifferenceOfHalfASigmaOfItsTexts) {
  std::mt19937 random(4);
  const RowPlan plan = PlanOf(std::vector<int64_t>(40, 50));
  int found = 0;
  for (int i = 0; i < 200; ++i) {
    std::vector<float> reference = NoiseOf(plan, 0.4, random);
    for (float& value : reference) value += 0.2f;
    found += ComparePaired(plan, reference, std::vector<float>(plan.rows(), 0.0f)).p_value < 0.05;
  }
  EXPECT_GT(found, 140);  // t is about 2.9 on average
}

}  // namespace
}  // namespace aerie
