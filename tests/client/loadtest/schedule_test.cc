// Loads, arrivals and acceptance against what is known of them without running anything.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "client/loadtest/accept_process.h"
#include "client/loadtest/arrival_schedule.h"
#include "client/loadtest/load_profile.h"

namespace aerie::loadtest {
namespace {

using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

LoadProfile Profile(const std::string& text) {
  const auto profile = LoadProfile::Parse(text);
  EXPECT_TRUE(profile.ok()) << profile.status();
  return *profile;
}

TEST(LoadProfileTest, OneLevelHoldsForEver) {
  const LoadProfile profile = Profile("200");
  EXPECT_EQ(profile.length(), absl::InfiniteDuration());
  EXPECT_EQ(profile.LevelAt(absl::Hours(9)), 200);
  EXPECT_EQ(profile.AreaBefore(absl::Seconds(3)), 600);
  EXPECT_EQ(profile.TimeOfArea(50), absl::Milliseconds(250));
  EXPECT_TRUE(profile.IsConstant());
}

TEST(LoadProfileTest, StepsAndRampsFollowEachOther) {
  const LoadProfile profile = Profile("100:10s,0:5s,200-400:20s");
  EXPECT_EQ(profile.length(), absl::Seconds(35));
  EXPECT_EQ(profile.MaxLevel(), 400);
  EXPECT_EQ(profile.LevelAt(absl::Seconds(9)), 100);
  EXPECT_EQ(profile.LevelAt(absl::Seconds(10)), 0) << "a piece begins with its first moment";
  EXPECT_EQ(profile.LevelAt(absl::Seconds(25)), 300);
  EXPECT_EQ(profile.LevelAt(absl::Seconds(35)), 0) << "behind the end";
  EXPECT_EQ(profile.PieceAt(absl::Seconds(12)), 1u);
  EXPECT_EQ(profile.AreaBefore(absl::Seconds(35)), 1000 + 0 + 6000);
  EXPECT_EQ(profile.AreaBefore(absl::Hours(1)), 7000);
}

TEST(LoadProfileTest, TimeOfAreaUndoesArea) {
  for (const char* text : {"50:10s,0:3s,20-80:10s,80-0:10s", "0-100:10s"}) {
    const LoadProfile profile = Profile(text);
    for (const double seconds : {0.5, 4.0, 9.0, 14.0, 19.9, 22.0, 30.0}) {
      const absl::Duration time = absl::Seconds(seconds);
      const double area = profile.AreaBefore(time);
      if (time >= profile.length() || profile.LevelAt(time) == 0) continue;
      EXPECT_THAT(absl::ToDoubleSeconds(profile.TimeOfArea(area)), DoubleNear(seconds, 1e-6))
          << text << " at " << seconds;
    }
    EXPECT_EQ(profile.TimeOfArea(1e9), absl::InfiniteDuration());
  }
}

TEST(LoadProfileTest, SaysWhenALevelIsReached) {
  const LoadProfile profile = Profile("1:10s,1-5:8s,2:10s");
  EXPECT_EQ(profile.TimeOfLevel(1, absl::ZeroDuration()), absl::ZeroDuration());
  EXPECT_EQ(profile.TimeOfLevel(3, absl::ZeroDuration()), absl::Seconds(14));
  EXPECT_EQ(profile.TimeOfLevel(3, absl::Seconds(15)), absl::Seconds(15));
  EXPECT_EQ(profile.TimeOfLevel(3, absl::Seconds(18)), absl::InfiniteDuration());
  EXPECT_EQ(profile.TimeOfLevel(2, absl::Seconds(18)), absl::Seconds(18));
  EXPECT_EQ(profile.TimeOfLevel(6, absl::ZeroDuration()), absl::InfiniteDuration());
}

TEST(LoadProfileTest, RefusesWhatIsNoLoadAndSaysHowToWriteOne) {
  for (const char* text : {"", "x", "-5", "nan", "inf", "0", "5:", "5:10", "5:0s", "5-6", "5:1s,,",
                           "1-2-3:1s", "0:1s", "5:inf"}) {
    const auto profile = LoadProfile::Parse(text);
    EXPECT_EQ(profile.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(profile.status().message()), HasSubstr("200-800:30s")) << text;
  }
}

std::vector<double> Starts(ArrivalSchedule& schedule) {
  std::vector<double> starts;
  for (;;) {
    const absl::Duration next = schedule.Next();
    if (next == absl::InfiniteDuration()) return starts;
    starts.push_back(absl::ToDoubleSeconds(next));
  }
}

TEST(ArrivalScheduleTest, ConstantArrivalsAreEvenlySpaced) {
  ArrivalSchedule schedule(Profile("100:1s"), Arrivals::kConstant, 1, 1);
  const std::vector<double> starts = Starts(schedule);
  ASSERT_EQ(starts.size(), 100u);
  for (size_t i = 0; i < starts.size(); ++i) {
    EXPECT_THAT(starts[i], DoubleNear(0.01 * static_cast<double>(i), 1e-9));
  }
}

TEST(ArrivalScheduleTest, ConstantArrivalsOnARampFollowItsSquareRoot) {
  ArrivalSchedule schedule(Profile("0-100:10s"), Arrivals::kConstant, 1, 1);
  const std::vector<double> starts = Starts(schedule);
  ASSERT_EQ(starts.size(), 500u);
  for (const size_t i : {1u, 7u, 100u, 499u}) {
    EXPECT_THAT(starts[i], DoubleNear(std::sqrt(2.0 * static_cast<double>(i) / 10.0), 1e-6));
  }
}

struct Moments {
  double mean = 0, variance = 0;
};

Moments GapMoments(Arrivals arrivals, double burstiness) {
  ArrivalSchedule schedule(LoadProfile::Constant(1), arrivals, burstiness, 5);
  constexpr int kGaps = 100'000;
  double last = 0, sum = 0, squares = 0;
  for (int i = 0; i < kGaps; ++i) {
    const double now = absl::ToDoubleSeconds(schedule.Next());
    sum += now - last;
    squares += (now - last) * (now - last);
    last = now;
  }
  const double mean = sum / kGaps;
  return {mean, squares / kGaps - mean * mean};
}

// Five standard errors of the estimates; the seed is fixed, so nothing is left to luck.
TEST(ArrivalScheduleTest, PoissonGapsHaveTheMomentsOfAnExponential) {
  const Moments gaps = GapMoments(Arrivals::kPoisson, 1);
  EXPECT_THAT(gaps.mean, DoubleNear(1.0, 0.016));
  EXPECT_THAT(gaps.variance, DoubleNear(1.0, 0.045));
}

TEST(ArrivalScheduleTest, GammaGapsHaveTheBurstinessThatWasAskedFor) {
  for (const double burstiness : {0.25, 0.7, 4.0}) {
    const Moments gaps = GapMoments(Arrivals::kGamma, burstiness);
    const double variance = 1.0 / burstiness;
    EXPECT_THAT(gaps.mean, DoubleNear(1.0, 5 * std::sqrt(variance / 100'000)));
    // The variance of a gamma's squared deviation is (2 + 6 / shape) times its variance squared.
    EXPECT_THAT(gaps.variance,
                DoubleNear(variance, 5 * variance * std::sqrt((2 + 6 / burstiness) / 100'000)))
        << burstiness;
  }
}

TEST(ArrivalScheduleTest, PoissonArrivalsOfAStepAreInProportionToIt) {
  ArrivalSchedule schedule(Profile("100:100s,400:100s"), Arrivals::kPoisson, 1, 3);
  int first = 0, second = 0;
  for (const double start : Starts(schedule)) ++(start < 100 ? first : second);
  EXPECT_NEAR(first, 10'000, 500);
  EXPECT_NEAR(second, 40'000, 1000);
}

TEST(ArrivalScheduleTest, TheSameSeedGivesTheSameStarts) {
  ArrivalSchedule one(Profile("50:2s"), Arrivals::kPoisson, 1, 8);
  ArrivalSchedule two(Profile("50:2s"), Arrivals::kPoisson, 1, 8);
  ArrivalSchedule other(Profile("50:2s"), Arrivals::kPoisson, 1, 9);
  const std::vector<double> starts = Starts(one);
  EXPECT_EQ(starts, Starts(two));
  EXPECT_NE(starts, Starts(other));
}

TEST(AcceptProcessTest, FixedCountsGoRoundAndNeverExceedTheDraft) {
  const auto process = AcceptProcess::Parse("fixed:3,0,2");
  ASSERT_TRUE(process.ok()) << process.status();
  Random random(1, 1);
  std::vector<int32_t> kept;
  for (int64_t round = 0; round < 6; ++round) kept.push_back(process->Draw(round, 2, random));
  EXPECT_THAT(kept, ElementsAre(2, 0, 2, 2, 0, 2));
  EXPECT_THAT(process->ByPosition(4),
              ElementsAre(DoubleEq(2.0 / 3), DoubleEq(2.0 / 3), DoubleEq(1.0 / 3), DoubleEq(0)));
  EXPECT_EQ(process->ToString(), "fixed:3,0,2");
}

TEST(AcceptProcessTest, ChanceByPositionIsTheProductOfWhatComesBefore) {
  const auto process = AcceptProcess::Parse("0.8,0.5");
  ASSERT_TRUE(process.ok()) << process.status();
  const std::vector<double> truth = process->ByPosition(3);
  EXPECT_THAT(truth, ElementsAre(DoubleEq(0.8), DoubleEq(0.4), DoubleEq(0.2)));
  Random random(4, 4);
  std::vector<int> kept(3, 0);
  constexpr int kRounds = 40'000;
  for (int64_t round = 0; round < kRounds; ++round) {
    const int32_t count = process->Draw(round, 3, random);
    for (int32_t i = 0; i < count; ++i) ++kept[static_cast<size_t>(i)];
  }
  for (size_t i = 0; i < truth.size(); ++i) {
    EXPECT_NEAR(kept[i] / double{kRounds}, truth[i], 0.0125) << i;
  }
}

TEST(AcceptProcessTest, RefusesWhatIsNone) {
  for (const char* text : {"", "1.1", "-0.1", "nan", "0.5,", "fixed:", "fixed:-1", "fixed:a"}) {
    EXPECT_FALSE(AcceptProcess::Parse(text).ok()) << text;
  }
}

}  // namespace
}  // namespace aerie::loadtest
