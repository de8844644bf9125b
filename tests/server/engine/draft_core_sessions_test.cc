// Sessions from open to end, and what happens to calls that are caught in between.
#include <string>
#include <vector>

#include "common/error_detail.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/engine/core_driver.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(DraftCoreSessionsTest, OpensWithTheOptionsInForce) {
  EngineOptions options;
  options.max_k = 5;
  options.session_lease = absl::Seconds(90);
  CoreDriver driver(options);
  const auto plain = driver.Open(FittingManifest());
  ASSERT_THAT(plain, IsOk());
  EXPECT_EQ(plain->max_k, 5);
  EXPECT_EQ(plain->lease, absl::Seconds(90));
  EXPECT_EQ(driver.Open(FittingManifest(), {.max_k = 3})->max_k, 3);
  EXPECT_EQ(driver.Open(FittingManifest(), {.max_k = 50})->max_k, 5);
  EXPECT_THAT(driver.Open(FittingManifest(), {.max_k = -1}),
              Refuses(StatusCode::kInvalidArgument, kReasonOptionsInvalid));
  EXPECT_EQ(driver.observer.opened(), 3);
  EXPECT_EQ(driver.core.sessions(), 3);
}

TEST(DraftCoreSessionsTest, RefusesAManifestThatDoesNotFitFieldByField) {
  CoreDriver driver;
  Manifest manifest = FittingManifest();
  manifest.num_layers = 9;
  manifest.hidden_size = 5;
  const auto refused = driver.Open(manifest);
  EXPECT_THAT(refused, StatusIs(StatusCode::kFailedPrecondition));
  EXPECT_THAT(DetailOf(refused.status()).mismatches, SizeIs(2));
  EXPECT_THAT(driver.observer.rejected(), ElementsAre(RejectReason::kWiring));
  EXPECT_EQ(driver.core.kv_usage().pages_used, 0);
}

TEST(DraftCoreSessionsTest, RefusesASessionAboveTheMaximumUntilOneEnds) {
  EngineOptions options;
  options.max_sessions = 2;
  CoreDriver driver(options);
  const std::string a = driver.OpenSession();
  driver.OpenSession();
  const auto refused = driver.Open(FittingManifest());
  EXPECT_THAT(refused, Refuses(StatusCode::kResourceExhausted, kReasonSessionLimit));
  EXPECT_GT(DetailOf(refused.status()).retry_after, absl::ZeroDuration());
  EXPECT_THAT(driver.observer.rejected(), ElementsAre(RejectReason::kQuota));
  ASSERT_THAT(driver.RunClose(a), IsOk());
  EXPECT_THAT(driver.Open(FittingManifest()), IsOk());
}

TEST(DraftCoreSessionsTest, CountsAStatelessCallAsASessionWhileItRuns) {
  EngineOptions options;
  options.max_sessions = 1;
  CoreDriver driver(options);
  DraftCall call = MakeDraftCall("", 0, {1}, 2);
  call.sequence = FittingManifest();
  const auto first = driver.Draft(call);
  const auto second = driver.Draft(call);
  EXPECT_THAT(second->value(), Refuses(StatusCode::kResourceExhausted, kReasonSessionLimit));
  driver.RunAll();
  EXPECT_THAT(first->value(), IsOk());
  EXPECT_THAT(driver.Run(call), IsOk());
}

TEST(DraftCoreSessionsTest, ClosesBehindTheCallsThatCameBefore) {
  CoreDriver driver;
  const std::string id = driver.OpenSession();
  const auto first = driver.Draft(MakeDraftCall(id, 0, {1, 2}, 2));
  const auto second = driver.Draft(MakeDraftCall(id, 2, {3}, 2));
  const auto close = driver.Close(id);
  const auto late = driver.Draft(MakeDraftCall(id, 3, {4}, 2));
  EXPECT_FALSE(close->here());
  driver.RunAll();
  EXPECT_THAT(first->value(), IsOk());
  EXPECT_THAT(second->value(), IsOk());
  ASSERT_THAT(close->value(), IsOk());
  EXPECT_EQ(close->value()->unreported_drafts, 1);
  EXPECT_THAT(late->value(), Refuses(StatusCode::kNotFound, kReasonSessionUnknown));
  EXPECT_EQ(driver.core.kv_usage().pages_used, 0);
  EXPECT_EQ(driver.core.queued(), 0);
}

TEST(DraftCoreSessionsTest, TellsHowASessionEnded) {
  CoreDriver driver;
  const std::string id = driver.OpenSession();
  driver.now += absl::Seconds(5);
  const auto drafted = driver.Run(MakeDraftCall(id, 0, {1, 2}, 2));
  ASSERT_THAT(drafted, IsOk());
  driver.now += absl::Seconds(3);
  ASSERT_THAT(driver.RunClose(id, {drafted->tree.tokens[0], 9, 9}), IsOk());
  const SessionRecord record = driver.observer.last_ended();
  EXPECT_EQ(record.end, SessionEnd::kClosed);
  EXPECT_EQ(record.final_tokens, 3);
  ASSERT_TRUE(record.judgement.has_value());
  EXPECT_EQ(record.judgement->accepted, 1);
  EXPECT_EQ(record.acceptance.completion_tokens, 3);
  EXPECT_EQ(record.active, absl::Seconds(3));
}

TEST(DraftCoreSessionsTest, CancelsWhatWaitsWhenItsStreamEnds) {
  CoreDriver driver;
  const std::string id = driver.OpenSession();
  const std::string other = driver.OpenSession();
  const auto active = driver.Draft(MakeDraftCall(id, 0, {1, 2}, 5));
  const auto waiting = driver.Draft(MakeDraftCall(id, 2, {3}, 5));
  const auto neighbour = driver.Draft(MakeDraftCall(other, 0, {1, 2}, 5));
  driver.Pass();
  const auto close = driver.Close(id, {}, SessionEnd::kStreamClosed);
  EXPECT_THAT(active->value(), StatusIs(StatusCode::kCancelled));
  EXPECT_THAT(waiting->value(), Refuses(StatusCode::kCancelled, kReasonCancelled));
  EXPECT_THAT(close->value(), IsOk());
  EXPECT_EQ(driver.core.kv_usage().pages_used, 2) << "its pages are free at once";
  EXPECT_EQ(driver.observer.last_ended().end, SessionEnd::kStreamClosed);
  driver.RunAll();
  ASSERT_THAT(neighbour->value(), IsOk());
  EXPECT_EQ(neighbour->value()->tree,
            DraftAlone({1, 2}, MakeRows(FittingManifest(), 0, 2).view, 5));
  EXPECT_EQ(driver.core.queued(), 0);
  EXPECT_EQ(driver.core.in_flight(), 0);
}

TEST(DraftCoreSessionsTest, EndsOnceWhenTheStreamEndsBehindAClose) {
  CoreDriver driver;
  const std::string id = driver.OpenSession();
  driver.Draft(MakeDraftCall(id, 0, {1, 2}, 5));
  const auto asked = driver.Close(id);
  driver.Pass();
  const auto stream = driver.Close(id, {}, SessionEnd::kStreamClosed);
  EXPECT_THAT(asked->value(), IsOk());
  EXPECT_THAT(stream->value(), StatusIs(StatusCode::kNotFound));
  EXPECT_THAT(driver.observer.ended(), SizeIs(1));
}

TEST(DraftCoreSessionsTest, ClosesAnIdleSessionWhenItsLeaseRunsOut) {
  EngineOptions options;
  options.session_lease = absl::Seconds(10);
  CoreDriver driver(options);
  const std::string id = driver.OpenSession();
  driver.now += absl::Seconds(9);
  ASSERT_THAT(driver.Run(MakeDraftCall(id, 0, {1}, 1)), IsOk());
  EXPECT_EQ(driver.core.NextExpiry(), driver.now + absl::Seconds(10));
  driver.now += absl::Seconds(10) - absl::Nanoseconds(1);
  driver.core.ExpireLeases(driver.now);
  EXPECT_THAT(driver.observer.ended(), IsEmpty());
  driver.now += absl::Nanoseconds(1);
  driver.core.ExpireLeases(driver.now);
  EXPECT_EQ(driver.observer.last_ended().end, SessionEnd::kLease);
  EXPECT_EQ(driver.observer.last_ended().unreported, UnreportedReason::kLease);
  EXPECT_EQ(driver.core.kv_usage().pages_used, 0);
  const auto late = driver.Run(MakeDraftCall(id, 1, {2}, 1));
  EXPECT_THAT(late, Refuses(StatusCode::kNotFound, kReasonSessionUnknown));
  EXPECT_THAT(std::string(late.status().message()), ::testing::HasSubstr("10s without a call"));
  EXPECT_THAT(driver.observer.rejected(), ElementsAre(RejectReason::kLease));
}

TEST(DraftCoreSessionsTest, KeepsASessionWhoseCallOutlastsTheLease) {
  EngineOptions options;
  options.session_lease = absl::Seconds(10);
  CoreDriver driver(options);
  const std::string id = driver.OpenSession();
  const auto reply = driver.Draft(MakeDraftCall(id, 0, {1}, 2));
  driver.Pass(absl::Seconds(60));
  driver.core.ExpireLeases(driver.now);
  driver.RunAll();
  EXPECT_THAT(reply->value(), IsOk());
  EXPECT_EQ(driver.core.sessions(), 1);
}

TEST(DraftCoreSessionsTest, AnswersAndClosesEverythingAtShutdown) {
  CoreDriver driver;
  const std::string a = driver.OpenSession();
  const std::string b = driver.OpenSession();
  driver.OpenSession();
  const auto active = driver.Draft(MakeDraftCall(a, 0, {1, 2}, 5));
  const auto waiting = driver.Draft(MakeDraftCall(a, 2, {3}, 5));
  const auto close = driver.Close(b);
  driver.Draft(MakeDraftCall(a, 3, {4}, 5));
  const auto close_behind = driver.Close(a);
  driver.Pass();
  driver.core.Shutdown(driver.now);
  for (DraftCore::Answer& answer : driver.core.TakeAnswers()) answer();
  EXPECT_THAT(active->value(), StatusIs(StatusCode::kUnavailable));
  EXPECT_THAT(waiting->value(), Refuses(StatusCode::kUnavailable, kReasonDraining));
  EXPECT_THAT(close->value(), IsOk());
  EXPECT_THAT(close_behind->value(), IsOk());
  EXPECT_THAT(driver.observer.ended(), SizeIs(3));
  EXPECT_EQ(driver.observer.last_ended().end, SessionEnd::kShutdown);
  EXPECT_EQ(driver.core.kv_usage().pages_used, 0);
  EXPECT_EQ(driver.core.queued() + driver.core.in_flight() + driver.core.sessions(), 0);
}

// The sums of what was told call by call equal the sums of the sessions' records.
TEST(DraftCoreSessionsTest, TellsTheSameSumsByRoundAndBySession) {
  CoreDriver driver;
  for (int s = 0; s < 5; ++s) {
    const std::string id = driver.OpenSession();
    int64_t length = 0;
    std::vector<int32_t> tokens = {1, 2, s};
    for (int round = 0; round < 6; ++round) {
      const auto result = driver.Run(MakeDraftCall(id, length, tokens, (s + round) % 4, s));
      ASSERT_THAT(result, IsOk());
      length = result->length;
      const int32_t kept = std::min(result->tree.size(), round % 3);
      tokens.assign(result->tree.tokens.begin(), result->tree.tokens.begin() + kept);
      tokens.push_back(100);
      if (round == 4) length -= 2;
    }
    ASSERT_THAT(driver.RunClose(id, s % 2 == 0 ? tokens : std::vector<int32_t>()), IsOk());
  }
  int64_t judged = 0, accepted = 0, proposed = 0, unreported = 0, committed = 0, made = 0;
  const auto add = [&](const auto& judgement, const auto& lost, int64_t tokens) {
    judged += judgement.has_value();
    accepted += judgement.has_value() ? judgement->accepted : 0;
    proposed += judgement.has_value() ? judgement->proposed : 0;
    unreported += lost.has_value();
    committed += tokens;
  };
  for (const RoundRecord& r : driver.observer.rounds()) {
    add(r.judgement, r.unreported, r.committed_tokens);
    made += r.proposed > 0;
  }
  AcceptanceRecord sum;
  for (const SessionRecord& s : driver.observer.ended()) {
    add(s.judgement, s.unreported, s.final_tokens);
    sum.spec_steps += s.acceptance.spec_steps;
    sum.accepted_draft_tokens += s.acceptance.accepted_draft_tokens;
    sum.draft_tokens += s.acceptance.draft_tokens;
    sum.unreported_drafts += s.acceptance.unreported_drafts;
    sum.completion_tokens += s.acceptance.completion_tokens;
  }
  EXPECT_EQ(judged, sum.spec_steps);
  EXPECT_EQ(accepted, sum.accepted_draft_tokens);
  EXPECT_EQ(proposed, sum.draft_tokens);
  EXPECT_EQ(unreported, sum.unreported_drafts);
  EXPECT_EQ(committed, sum.completion_tokens);
  EXPECT_EQ(made, judged + unreported) << "every proposal is judged or lost, once";
  EXPECT_GT(judged, 10);
  EXPECT_GT(unreported, 2);
}

}  // namespace
}  // namespace aerie
