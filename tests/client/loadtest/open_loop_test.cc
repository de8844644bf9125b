// Latencies and schedules of whole load tests, on a clock that the server's drafts move.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "common/error_detail.h"
#include "tests/client/loadtest/fake_clock.h"
#include "tests/client/loadtest/load_test_fixture.h"

namespace aerie::loadtest {
namespace {

using ::testing::SizeIs;

class OpenLoopTest : public LoadTestTest {};

INSTANTIATE_TEST_SUITE_P(Transports, OpenLoopTest,
                         ::testing::Values(TransportKind::kUnary, TransportKind::kStream),
                         [](const auto& test) {
                           return test.param == TransportKind::kUnary ? "Unary" : "Stream";
                         });

TEST_P(OpenLoopTest, AStallShowsInTheLatencyFromTheIntendedStartAndNotInTheOneFromTheSend) {
  FakeClock clock;
  std::atomic<int> calls{0};
  service_.before_draft = [&](const v1::DraftRequest&) {
    // Each draft takes a millisecond; one of a hundred takes a second.
    clock.Advance(++calls == 21 ? absl::Seconds(1) : absl::Milliseconds(1));
    return absl::OkStatus();
  };
  LoadOptions options = Options();
  options.requests.reset();
  options.sessions = LoadProfile::Constant(1);
  options.rounds = 1000;
  options.rate = LoadProfile::Constant(100);
  options.arrivals = Arrivals::kConstant;
  options.total_rounds = 100;
  auto test = LoadTest::Prepare(options, &clock);
  ASSERT_TRUE(test.ok()) << test.status();
  const RunResult result = (*test)->Run(nullptr).result;
  const MeasuredStats& m = result.measured;
  EXPECT_EQ(result.whole.rounds, 100);
  ASSERT_EQ(m.round.count(), 100);
  EXPECT_LT(m.round.Quantile(0.99), absl::Microseconds(1001)) << "from the send, one was slow";
  EXPECT_EQ(m.round.max(), absl::Seconds(1));
  // Round 19 was sent at 190 ms and answered at 1190 ms. Round n behind it could only be sent when
  // the one before was answered, and ended at 1171 + n ms, n times 10 ms being when it was meant to
  // start.
  EXPECT_GE(m.round_intended.Quantile(0.5), absl::Milliseconds(500));
  EXPECT_EQ(m.round_intended.max(), absl::Seconds(1));
  EXPECT_EQ(m.late_rounds, 80 + 1) << "all behind the stall, and the first, behind the prompt";
  EXPECT_EQ(m.wake_lag.max(), absl::ZeroDuration()) << "none of it was the tester's fault";
}

TEST_P(OpenLoopTest, AnOpenLoopStartsWhatItWasAskedForAndNoMore) {
  FakeClock clock;
  service_.before_draft = [&](const v1::DraftRequest&) {
    clock.Advance(absl::Microseconds(10));
    return absl::OkStatus();
  };
  LoadOptions options = Options();
  options.requests.reset();
  options.sessions = LoadProfile::Constant(1);
  options.rate = *LoadProfile::Parse("50:1s,100:1s");
  options.arrivals = Arrivals::kConstant;
  options.rounds = 1000;
  auto test = LoadTest::Prepare(options, &clock);
  ASSERT_TRUE(test.ok()) << test.status();
  const RunResult result = (*test)->Run(nullptr).result;
  EXPECT_EQ(result.whole.rounds, 150);
  EXPECT_EQ(result.asked_rounds, 150);
  ASSERT_THAT(result.measured.pieces, SizeIs(2));
  EXPECT_EQ(result.measured.pieces[0].round.count(), 50);
  EXPECT_EQ(result.measured.pieces[1].round.count(), 100);
  EXPECT_EQ(result.measured.late_rounds, 1) << "the first, behind the prompt";
}

TEST_P(OpenLoopTest, CountsFailedRoundsByTheirCodeAndLeavesThemOutOfTheOthersLatency) {
  std::atomic<int> calls{0};
  service_.before_draft = [&](const v1::DraftRequest&) {
    return ++calls == 5 ? WithReason(absl::InternalError("broken"), "BROKEN") : absl::OkStatus();
  };
  LoadOptions options = Options();
  options.requests = 1;
  options.rounds = 10;
  const MeasuredStats m = Run(options).result.measured;
  EXPECT_EQ(m.round_by_code.at("OK").count(), 9);
  EXPECT_EQ(m.round_by_code.at("INTERNAL").count(), 1);
  EXPECT_EQ(m.round_intended.count(), 9);
  EXPECT_EQ(m.failed_rounds, 1);
}

}  // namespace
}  // namespace aerie::loadtest
