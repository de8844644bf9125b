// Sweeps over servers whose knee is known, and how their points are judged.
#include "client/loadtest/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace aerie::loadtest {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Lt;

// A queue with one server of exponential service times of 1 ms: throughput over latency is highest
// at half of its capacity of 1000 a second, and above the capacity it does no more.
absl::StatusOr<SweepPoint> SingleServerQueue(double rate) {
  SweepPoint point;
  point.asked = rate;
  point.rounds = std::min(rate, 1000.0);
  point.mean = rate < 1000 ? absl::Seconds(1 / (1000 - rate)) : absl::Seconds(10);
  return point;
}

std::vector<double> LevelsOf(const SweepResult& result) {
  std::vector<double> levels;
  for (const SweepPoint& point : result.points) levels.push_back(point.level);
  return levels;
}

TEST(SweepTest, FindsTheKneeOfAQueueAtHalfItsCapacity) {
  SweepOptions options;
  options.from = 10;
  options.refine = 4;
  const auto result = RunSweep(options, SingleServerQueue);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(result->knee.has_value());
  EXPECT_NEAR(result->points[*result->knee].level, 500, 35);
  EXPECT_TRUE(std::is_sorted(result->points.begin(), result->points.end(),
                             [](const auto& a, const auto& b) { return a.level < b.level; }));
}

TEST(SweepTest, StopsBehindThePointThatDoesNotKeepUp) {
  SweepOptions options;
  options.refine = 0;
  const auto result = RunSweep(options, SingleServerQueue);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(LevelsOf(*result), ElementsAre(10, 20, 40, 80, 160, 320, 640, 1280));
  EXPECT_FALSE(result->points.back().KeepsUp());
}

TEST(SweepTest, TheKneeOfSessionsIsWhereMoreOfThemOnlyWait) {
  // Four at a time are served in 10 ms each; more than four wait for each other.
  const auto probe = [](double sessions) -> absl::StatusOr<SweepPoint> {
    SweepPoint point;
    point.rounds = 100 * std::min(sessions, 4.0);
    point.mean = absl::Milliseconds(10) * std::max(1.0, sessions / 4);
    return point;
  };
  SweepOptions options;
  options.over = SweepOver::kSessions;
  options.from = 1;
  options.to = 64;
  const auto result = RunSweep(options, probe);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->points[*result->knee].level, 4);
  for (const double level : LevelsOf(*result)) EXPECT_EQ(level, std::floor(level));
  EXPECT_THAT(LevelsOf(*result), Each(Lt(64))) << "it gave up long before";
}

TEST(SweepTest, TheBestKIsTheOneWithTheMostTokens) {
  // Each token costs 2 ms and is kept with probability 0.6 behind those before it.
  const auto probe = [](double k) -> absl::StatusOr<SweepPoint> {
    SweepPoint point;
    const double tokens = (1 - std::pow(0.6, k + 1)) / 0.4;
    point.tokens = tokens / (0.010 + 0.002 * k);
    return point;
  };
  SweepOptions options;
  options.over = SweepOver::kK;
  options.values = {1, 2, 3, 4, 5, 6};
  const auto result = RunSweep(options, probe);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->points[*result->knee].level, 2);
  EXPECT_EQ(result->points.size(), 6u) << "values are measured as they stand";
}

TEST(SweepTest, KnowsTheHighestLevelWithinTheSloApartFromTheKnee) {
  const auto probe = [](double rate) {
    auto point = SingleServerQueue(rate);
    point->within_slo = point->mean <= absl::Milliseconds(5);
    return point;
  };
  SweepOptions options;
  options.values = {100, 500, 790, 900, 2000};
  const auto result = RunSweep(options, probe);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->points[*result->knee].level, 500);
  EXPECT_EQ(result->points[*result->best_within_slo].level, 790);
}

TEST(SweepTest, ThereIsNoKneeWhereNothingKeepsUp) {
  SweepOptions options;
  options.from = 5000;
  const auto result = RunSweep(options, SingleServerQueue);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->knee.has_value());
  EXPECT_EQ(result->points.size(), 1u);
}

TEST(SweepTest, PointsWithTooManyFailuresAreNoKnee) {
  const auto probe = [](double rate) {
    auto point = SingleServerQueue(rate);
    point->within_budget = rate < 100;
    return point;
  };
  SweepOptions options;
  options.refine = 0;
  const auto result = RunSweep(options, probe);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->points[*result->knee].level, 80);
}

TEST(SweepTest, APointThatCannotBeMeasuredEndsTheSweep) {
  const auto probe = [](double) -> absl::StatusOr<SweepPoint> {
    return absl::UnavailableError("away");
  };
  EXPECT_EQ(RunSweep({}, probe).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace aerie::loadtest
