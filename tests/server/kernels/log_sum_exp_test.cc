#include "server/kernels/log_sum_exp.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/kernels/levels.h"

namespace aerie {
namespace {

class LogSumExpTest : public testing::TestWithParam<NamedLevel> {};

TEST_P(LogSumExpTest, EqualsTheSumInFloat64) {
  std::mt19937 random(5);
  for (const int64_t count : {1, 2, 3, 7, 16, 17, 100, 511, 6144, 32000}) {
    std::normal_distribution<float> numbers(3.0f, 6.0f);
    std::vector<float> scores(count);
    for (float& score : scores) score = numbers(random);
    double total = 0.0;
    float largest = scores[0];
    for (const float score : scores) largest = std::max(largest, score);
    for (const float score : scores) total += std::exp(double{score} - double{largest});
    const ScoreSummary summary = Summarise(scores.data(), count, GetParam().level);
    EXPECT_TRUE(summary.finite);
    EXPECT_EQ(summary.largest, largest);
    EXPECT_NEAR(summary.log_sum_exp, largest + std::log(total), 2e-7 * (1 + std::abs(largest)))
        << count;
  }
}

TEST_P(LogSumExpTest, ScoresFarApartAreNoTrouble) {
  const std::vector<float> scores = {-3e38f, 3e38f, 0.0f, -200.0f, 3e38f, 0, 0, 0, 0, 0,
                                     0,      0,     0,    0,       0,     0, 0, 0, 0, 0};
  const ScoreSummary summary = Summarise(scores.data(), 20, GetParam().level);
  EXPECT_TRUE(summary.finite);
  EXPECT_EQ(summary.largest, 3e38f);
  EXPECT_EQ(static_cast<float>(summary.log_sum_exp), 3e38f);
}

TEST_P(LogSumExpTest, ScoresFarBelowTheLargestCountForNothing) {
  for (float below = 40.0f; below < 400.0f; below += 0.5f) {
    std::vector<float> scores(40, -below);
    scores[3] = 0.0f;
    EXPECT_EQ(static_cast<float>(Summarise(scores.data(), 40, GetParam().level).log_sum_exp), 0.0f)
        << below;
  }
}

TEST_P(LogSumExpTest, EveryScoreThatIsNoNumberIsFound) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    for (size_t at = 0; at < 37; ++at) {
      std::vector<float> scores(37, 1.0f);
      scores[at] = bad;
      EXPECT_FALSE(Summarise(scores.data(), 37, GetParam().level).finite) << bad << " at " << at;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, LogSumExpTest, testing::ValuesIn(Levels()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace aerie
