// Whole load tests against a small server.
#include "client/loadtest/load_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include <atomic>

#include "absl/synchronization/notification.h"
#include "common/error_detail.h"
#include "tests/client/loadtest/load_test_fixture.h"

namespace aerie::loadtest {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

INSTANTIATE_TEST_SUITE_P(Transports, LoadTestTest,
                         ::testing::Values(TransportKind::kUnary, TransportKind::kStream),
                         [](const auto& test) {
                           return test.param == TransportKind::kUnary ? "Unary" : "Stream";
                         });

TEST_P(LoadTestTest, FindsExactlyTheAcceptLengthOfACertainProcess) {
  LoadOptions options = Options();
  options.accept = AcceptProcess::ByChance({1.0, 1.0, 0.0});
  const Report report = Run(options);
  const WholeStats& whole = report.result.whole;
  EXPECT_THAT(whole.sure.acceptance.MeanAcceptLength(), DoubleEq(3.0));
  EXPECT_THAT(whole.sure.acceptance.RateByPosition(), ElementsAre(1.0, 1.0, 0.0, 0.0));
  // A prompt's call drafts too, so a session of 20 rounds makes 21 proposals.
  EXPECT_EQ(whole.sure.acceptance.drafts(), 10 * 21);
  EXPECT_EQ(whole.rounds, 10 * 20);
  EXPECT_EQ(whole.sure.committed_tokens, 10 * 21 * 3);
  EXPECT_EQ(whole.sure.rows, 10 * (30 + 20 * 3));
  EXPECT_EQ(whole.sure.bytes, whole.sure.rows * report.manifest.row_width() * 2);
  EXPECT_EQ(whole.sessions_finished, 10);
  EXPECT_EQ(Judge(report).exit_code, 0);
  EXPECT_THAT(service_.Sessions(), IsEmpty());
}

TEST_P(LoadTestTest, AgreesWithTheServerToTheUnitWhateverIsAccepted) {
  LoadOptions options = Options();
  options.accept = AcceptProcess::ByChance({0.8, 0.5});
  const Report report = Run(options);
  const WholeStats& whole = report.result.whole;
  EXPECT_EQ(whole.sessions_compared, 10);
  EXPECT_THAT(whole.differences, IsEmpty());
  EXPECT_EQ(whole.sure.acceptance.drafts(), 210);
  EXPECT_EQ(whole.sure.committed_tokens, 210 + whole.sure.acceptance.accepted_tokens());
  EXPECT_EQ(whole.sure.proposals, 210);
  EXPECT_EQ(Judge(report).exit_code, 0);
}

TEST_P(LoadTestTest, AgreesWithTheServerToTheUnitAboutTrees) {
  LoadOptions options = Options();
  options.tree = TreeShape{.depth = 3, .top_k = 2, .total_tokens = 6};
  options.accept = AcceptProcess::ByChance({1.0, 0.5});
  options.client = "blue";
  const Report report = Run(options);
  EXPECT_EQ(report.result.whole.difference_count, 0)
      << ::testing::PrintToString(report.result.whole.differences);
  EXPECT_EQ(report.result.whole.error_count(), 0);
  const AcceptanceTally& tally = report.result.whole.sure.acceptance;
  EXPECT_EQ(tally.draft_tokens(), 6 * tally.drafts());
  EXPECT_EQ(tally.proposed_at().size(), 3u) << "positions are levels";
  EXPECT_EQ(tally.accepted_at().at(0), tally.drafts());
  EXPECT_EQ(service_.OpenRequests().at(0).client(), "blue");
}

TEST_P(LoadTestTest, TellsAdaptiveKWhatVerificationTook) {
  LoadOptions options = Options();
  options.adaptive_k = true;
  options.verify_time = absl::Milliseconds(35);
  options.requests = 1;
  const Report report = Run(options);
  EXPECT_EQ(report.result.whole.difference_count, 0);
  const auto requests = service_.DraftRequests();
  EXPECT_FALSE(requests.at(0).has_verify_cost()) << "the prompt follows no verification";
  EXPECT_EQ(requests.at(1).verify_cost().time().nanos(), 35'000'000);
  EXPECT_EQ(requests.at(1).verify_cost().draft_tokens(), 2u) << "of four the server drafts two";
}

TEST_P(LoadTestTest, DrawsItsSessionsFromSeedsOfTheirOwn) {
  LoadOptions options = Options();
  options.temperature = 0.5f;
  options.seed = 100;
  options.requests = 3;
  Run(options);
  std::set<uint64_t> seeds;
  for (const auto& open : service_.OpenRequests()) seeds.insert(open.options().sampling().seed());
  EXPECT_THAT(seeds, ::testing::ElementsAre(100, 101, 102));
}

TEST_P(LoadTestTest, TheSameSeedGivesTheSameSessionsHoweverTheyAreScheduled) {
  LoadOptions options = Options();
  options.accept = AcceptProcess::ByChance({0.6});
  const Report wide = Run(options);
  options.sessions = LoadProfile::Constant(1);
  const Report narrow = Run(options);
  EXPECT_EQ(wide.result.whole.sure.acceptance, narrow.result.whole.sure.acceptance);
  options.seed = 2;
  EXPECT_FALSE(Run(options).result.whole.sure.acceptance == narrow.result.whole.sure.acceptance);
}

TEST_P(LoadTestTest, ReportsAServerThatCountsDifferently) {
  service_.bend_record = [](AcceptanceRecord* record) { ++record->accepted_draft_tokens; };
  LoadOptions options = Options();
  options.accept = AcceptProcess::ByChance({1.0, 0.0});
  const Report report = Run(options);
  EXPECT_EQ(report.result.whole.difference_count, 10);
  ASSERT_THAT(report.result.whole.differences, SizeIs(10));
  EXPECT_THAT(report.result.whole.differences[0],
              HasSubstr("accepted draft tokens: the session counted 21, the server 22"));
  EXPECT_EQ(Judge(report).exit_code, 1);
  EXPECT_THAT(ToTable(report), HasSubstr("10 differences"));
}

TEST_P(LoadTestTest, CountsASessionWithAnErrorApart) {
  std::atomic<int> calls{0};
  service_.after_draft = [&](const v1::DraftRequest&) {
    return ++calls == 5 ? WithReason(absl::InternalError("broken"), "BROKEN") : absl::OkStatus();
  };
  LoadOptions options = Options();
  options.requests = 1;
  const Report report = Run(options);
  EXPECT_EQ(report.result.whole.errors.at("INTERNAL"), 1);
  EXPECT_THAT(report.result.whole.first_error, HasSubstr("broken"));
  EXPECT_EQ(report.result.whole.sessions_failed, 1);
  EXPECT_EQ(report.result.whole.sessions_compared, 0);  // its record cannot be compared
  EXPECT_EQ(Judge(report).exit_code, 1);
}

TEST_P(LoadTestTest, GoesOnByItselfWhenTheServerForgetsItsSessions) {
  std::atomic<int> calls{0};
  service_.before_draft = [&](const v1::DraftRequest&) {
    if (++calls == 7) service_.ForgetSessions();
    return absl::OkStatus();
  };
  LoadOptions options = Options();
  options.requests = 1;
  options.accept = AcceptProcess::ByChance({1.0, 0.0});
  const Report report = Run(options);
  EXPECT_EQ(report.result.measured.resyncs, 1);
  EXPECT_EQ(report.result.whole.rounds, 20);
  EXPECT_EQ(report.result.whole.sessions_not_compared, 1) << "its record went with it";
  EXPECT_EQ(report.result.whole.error_count(), 0);
}

TEST_P(LoadTestTest, EndsASessionAtTheServersContextAndStillAgreesWithIt) {
  service_.limits.set_max_context(60);
  LoadOptions options = Options();
  options.accept = AcceptProcess::ByChance({1.0, 0.0});
  const Report report = Run(options);
  EXPECT_EQ(report.result.whole.sessions_at_context_limit, 10);
  EXPECT_EQ(report.result.whole.error_count(), 0);
  EXPECT_THAT(report.result.whole.differences, IsEmpty());
  EXPECT_THAT(report.result.whole.sure.acceptance.MeanAcceptLength(), DoubleEq(2.0));
}

TEST_P(LoadTestTest, RunsForADuration) {
  LoadOptions options = Options();
  options.requests.reset();
  options.duration = absl::Milliseconds(150);
  options.warmup = absl::Milliseconds(50);
  const Report report = Run(options);
  EXPECT_EQ(report.result.seconds, absl::Milliseconds(100));
  EXPECT_GE(report.result.whole.sessions_compared, 4);  // every worker's session at least
  EXPECT_THAT(report.result.whole.differences, IsEmpty());
  EXPECT_EQ(Judge(report).exit_code, 0);
}

TEST_P(LoadTestTest, LeavesTheWarmUpOutOfTheFiguresButNotOutOfTheComparison) {
  LoadOptions options = Options();
  options.warmup = absl::Hours(1);  // longer than the run
  const Report report = Run(options);
  EXPECT_EQ(report.result.measured.rounds, 0);
  EXPECT_EQ(report.result.measured.round.count(), 0);
  EXPECT_EQ(report.result.measured.committed_tokens, 0);
  EXPECT_EQ(report.result.measured.acceptance.drafts(), 0);
  EXPECT_EQ(report.result.whole.sure.acceptance.drafts(), 210);
  EXPECT_EQ(report.result.whole.sessions_compared, 10);
}

TEST_P(LoadTestTest, StopsWhenAskedTo) {
  std::atomic<LoadTest*> running{nullptr};
  std::atomic<int> calls{0};
  service_.before_draft = [&](const v1::DraftRequest&) {
    if (++calls == 10) running.load()->Stop();
    return absl::OkStatus();
  };
  LoadOptions options = Options();
  options.sessions = LoadProfile::Constant(1);
  options.requests = 1'000'000;
  auto test = LoadTest::Prepare(options);
  ASSERT_TRUE(test.ok()) << test.status();
  running = test->get();
  const Report report = (*test)->Run(nullptr);
  EXPECT_EQ(report.result.whole.rounds, 9);
  EXPECT_EQ(report.result.whole.sessions_compared, 1);
}

TEST_P(LoadTestTest, UsesAsManyConnectionsAsItIsGiven) {
  // No session goes on before all three are open, so that each worker has one.
  std::atomic<int> opened{0};
  absl::Notification all_open;
  service_.before_draft = [&](const v1::DraftRequest& request) {
    if (request.seq() == 1 && ++opened == 3) all_open.Notify();
    all_open.WaitForNotification();
    return absl::OkStatus();
  };
  LoadOptions options = Options();
  options.connections = 3;
  options.sessions = LoadProfile::Constant(3);
  options.requests = 3;
  const Report report = Run(options);
  EXPECT_EQ(report.result.whole.sessions_compared, 3);
  EXPECT_EQ(Judge(report).exit_code, 0);
  EXPECT_EQ(service_.streams_started(), GetParam() == TransportKind::kStream ? 3 : 0);
}

TEST_P(LoadTestTest, RefusesAKThatTheServerDoesNotDraft) {
  LoadOptions options = Options();
  options.k = 9;
  const auto test = LoadTest::Prepare(options);
  EXPECT_EQ(test.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(test.status().message()), HasSubstr("--k is 9"));
}

TEST(LoadTestConnectionTest, SaysThatThereIsNoServer) {
  LoadOptions options;
  options.address = "unix:/nonexistent/socket";
  options.deadline = absl::Milliseconds(200);
  EXPECT_FALSE(LoadTest::Prepare(options).ok());
}

}  // namespace
}  // namespace aerie::loadtest
