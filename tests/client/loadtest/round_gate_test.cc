// When rounds start and which count, on a clock of the test's own.
#include "client/loadtest/round_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/client/loadtest/fake_clock.h"

namespace aerie::loadtest {
namespace {

class RoundGateTest : public ::testing::Test {
 protected:
  static LoadOptions Open(const char* rate) {
    LoadOptions options;
    options.rate = *LoadProfile::Parse(rate);
    options.arrivals = Arrivals::kConstant;
    return options;
  }
  FakeClock clock_;
};

TEST_F(RoundGateTest, AnOpenLoopKeepsToItsScheduleWhateverTheRoundsTake) {
  RoundGate gate(Open("10:1s"), &clock_);
  gate.Begin();
  for (int i = 0; i < 10; ++i) {
    const auto start = gate.WaitToStart(0);
    ASSERT_TRUE(start.has_value());
    EXPECT_EQ(start->intended, gate.start() + i * absl::Milliseconds(100));
    // The fourth round takes half a second; those behind it cannot start in time, and say so.
    clock_.Advance(i == 3 ? absl::Milliseconds(450) : absl::Milliseconds(10));
    if (i > 3 && i < 8) {
      EXPECT_GT(start->ready, start->intended) << i;
    }
  }
  EXPECT_FALSE(gate.WaitToStart(0).has_value());
  EXPECT_FALSE(gate.WaitToOpen(0)) << "no start is left";
}

TEST_F(RoundGateTest, KnowsHowManyStartsWereMeantThoughNobodyCameToTakeThem) {
  RoundGate gate(Open("10:1s,20:1s"), &clock_);
  gate.Begin();
  EXPECT_EQ(gate.StartsWithin(absl::Milliseconds(500), absl::Milliseconds(1500)), 5 + 10);
  EXPECT_EQ(gate.StartsWithin(absl::ZeroDuration(), absl::InfiniteDuration()), 30);
}

TEST_F(RoundGateTest, AClosedLoopStartsWhenTheSessionIsReadyAndHasThought) {
  LoadOptions options;
  options.think_time = absl::Milliseconds(20);
  options.duration = absl::Seconds(1);
  RoundGate gate(options, &clock_);
  gate.Begin();
  const absl::Time ready = clock_.Now();
  const auto start = gate.WaitToStart(0);
  ASSERT_TRUE(start.has_value());
  EXPECT_EQ(start->ready, ready);
  EXPECT_EQ(start->intended, ready + absl::Milliseconds(20));
  EXPECT_EQ(clock_.Now(), start->intended);
  clock_.Advance(absl::Seconds(1));
  EXPECT_FALSE(gate.WaitToStart(0).has_value());
  EXPECT_TRUE(gate.Over());
}

TEST_F(RoundGateTest, SessionsComeAndGoWithTheirProfile) {
  LoadOptions options;
  options.sessions = *LoadProfile::Parse("1:10s,3:10s,1:10s");
  RoundGate gate(options, &clock_);
  gate.Begin();
  EXPECT_TRUE(gate.WaitToStart(0).has_value());
  EXPECT_FALSE(gate.WaitToStart(2).has_value()) << "there is room for one";
  EXPECT_TRUE(gate.WaitToOpen(2)) << "its turn comes";
  EXPECT_EQ(clock_.Now() - gate.start(), absl::Seconds(10));
  EXPECT_TRUE(gate.WaitToStart(2).has_value());
  clock_.Advance(absl::Seconds(10));
  EXPECT_FALSE(gate.WaitToStart(2).has_value()) << "room for one again";
  EXPECT_FALSE(gate.WaitToOpen(2)) << "and it does not come back";
  EXPECT_TRUE(gate.WaitToStart(0).has_value());
}

TEST_F(RoundGateTest, OnlyWhatLiesBetweenWarmUpAndDrainCounts) {
  LoadOptions options;
  options.warmup = absl::Seconds(2);
  RoundGate gate(options, &clock_);
  gate.Begin();
  const absl::Time start = gate.start();
  const auto at = [start](int seconds) { return start + absl::Seconds(seconds); };
  EXPECT_FALSE(gate.Counts(at(1), at(3))) << "it began in the warm-up";
  EXPECT_TRUE(gate.Counts(at(2), at(3)));
  clock_.Advance(absl::Seconds(5));
  gate.BeginDrain();
  clock_.Advance(absl::Seconds(5));
  gate.BeginDrain();  // by another worker
  EXPECT_EQ(gate.window_end(), at(5)) << "the first worker without work ends it";
  EXPECT_TRUE(gate.Counts(at(3), at(5)));
  EXPECT_FALSE(gate.Counts(at(3), at(6))) << "it ended in the drain";
}

TEST_F(RoundGateTest, ARunByTimeEndsItsWindowWithTheTimeNotWithAWorker) {
  LoadOptions options;
  options.duration = absl::Seconds(10);
  RoundGate gate(options, &clock_);
  gate.Begin();
  clock_.Advance(absl::Seconds(3));
  gate.BeginDrain();
  EXPECT_EQ(gate.window_end() - gate.start(), absl::Seconds(10));
}

TEST_F(RoundGateTest, HandsOutNoMoreRoundsThanAskedFor) {
  LoadOptions options;
  options.total_rounds = 3;
  RoundGate gate(options, &clock_);
  gate.Begin();
  int rounds = 0;
  while (gate.WaitToStart(rounds % 2).has_value()) ++rounds;
  EXPECT_EQ(rounds, 3);
  EXPECT_FALSE(gate.WaitToOpen(0));
}

TEST_F(RoundGateTest, StopsAtOnce) {
  RoundGate gate(Open("1:1000s"), &clock_);
  gate.Begin();
  ASSERT_TRUE(gate.WaitToStart(0).has_value());
  gate.Stop();
  EXPECT_FALSE(gate.WaitToStart(0).has_value());
  EXPECT_LT(clock_.Now() - gate.start(), absl::Seconds(1));
}

}  // namespace
}  // namespace aerie::loadtest
