// What a session does for its worker, over both transports.
#include "client/draft_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "absl/synchronization/notification.h"
#include "client/draft_client.h"
#include "common/error_detail.h"
#include "tests/client/fake_draft_service.h"
#include "tests/client/worker.h"

namespace aerie {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::SizeIs;

class DraftSessionTest : public ::testing::TestWithParam<TransportKind> {
 protected:
  std::unique_ptr<DraftClient> MakeClient(absl::Duration deadline = absl::Seconds(30)) {
    ClientOptions options;
    options.transport = GetParam();
    options.deadline = deadline;
    options.patience = absl::Seconds(20);
    auto client = DraftClient::Create(server_.address(), options);
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }
  std::unique_ptr<DraftSession> OpenSession(DraftClient& client, SessionSettings settings = {}) {
    auto session = client.Open(FakeDraftService::FittingManifest(), std::move(settings));
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }
  FakeSession OnlySession() {
    const auto sessions = service_.Sessions();
    EXPECT_THAT(sessions, SizeIs(1));
    return sessions.empty() ? FakeSession() : sessions.begin()->second;
  }
  void ExpectServerHolds(const Worker& worker) {
    const FakeSession held = OnlySession();
    EXPECT_THAT(held.tokens, ElementsAreArray(worker.tokens()));
    EXPECT_TRUE(held.bytes == worker.bytes()) << "rows differ from the worker's";
  }

  FakeDraftService service_;
  TestServer server_{&service_};
};

INSTANTIATE_TEST_SUITE_P(Transports, DraftSessionTest,
                         ::testing::Values(TransportKind::kUnary, TransportKind::kStream),
                         [](const auto& test) {
                           return test.param == TransportKind::kUnary ? "Unary" : "Stream";
                         });

TEST_P(DraftSessionTest, DraftsBehindTheRowsItBrought) {
  auto client = MakeClient();
  auto session = OpenSession(*client);
  Worker worker;
  worker.Grow(5);
  const DraftOutcome outcome = session->Draft(worker.Call(0, 3));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_THAT(outcome.tree.tokens, ElementsAreArray(worker.ExpectedDraft(3)));
  EXPECT_THAT(outcome.tree.parents, ElementsAre(0, 1, 2));
  EXPECT_EQ(outcome.length, 5);
  EXPECT_EQ(outcome.method, v1::PROPOSAL_METHOD_GREEDY_CHAIN);
  EXPECT_EQ(outcome.timing.total, absl::Microseconds(70));
  EXPECT_EQ(outcome.accepted, std::nullopt);
  ExpectServerHolds(worker);
}

TEST_P(DraftSessionTest, CutsAPromptByTheServersRowLimitAndDraftsBehindTheLastPiece) {
  auto client = MakeClient();
  auto session = OpenSession(*client);
  Worker worker;
  worker.Grow(250);
  const DraftOutcome outcome = session->Draft(worker.Call(0, 2));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_THAT(outcome.tree.tokens, ElementsAreArray(worker.ExpectedDraft(2)));
  std::vector<int> rows, k, base;
  for (const auto& request : service_.DraftRequests()) {
    rows.push_back(request.token_ids_size());
    k.push_back(static_cast<int>(request.k()));
    base.push_back(static_cast<int>(request.base_length()));
  }
  EXPECT_THAT(rows, ElementsAre(100, 100, 50));
  EXPECT_THAT(base, ElementsAre(0, 100, 200));
  EXPECT_THAT(k, ElementsAre(0, 0, 2));
  ExpectServerHolds(worker);
}

TEST_P(DraftSessionTest, CutsAPromptByTheServersByteLimit) {
  service_.limits.set_max_message_bytes(1024 + 37 * 30);  // 32 bytes a row and 5 a token
  auto client = MakeClient();
  auto session = OpenSession(*client);
  Worker worker;
  worker.Grow(61);
  const DraftOutcome outcome = session->Draft(worker.Call(0, 1));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  std::vector<int> rows;
  for (const auto& request : service_.DraftRequests()) rows.push_back(request.token_ids_size());
  EXPECT_THAT(rows, ElementsAre(30, 30, 1));
  ExpectServerHolds(worker);
}

TEST_P(DraftSessionTest, TellsWhatTheServerFoundAcceptedEvenWhenTheCallIsCut) {
  service_.limits.set_max_rows_per_call(4);
  auto client = MakeClient();
  auto session = OpenSession(*client);
  Worker worker;
  worker.Grow(3);
  const DraftOutcome first = session->Draft(worker.Call(0, 2));
  ASSERT_TRUE(first.status.ok()) << first.status;
  // Both draft tokens are kept; the rows behind them make the call too long for one message.
  std::vector<int32_t> tokens = first.tree.tokens;
  for (int32_t extra = 0; extra < 4; ++extra) tokens.push_back(extra);
  Worker other(2);
  other.Grow(6);
  DraftInput input = other.Call(0, 1);
  input.base_length = 3;
  input.tokens = tokens;
  input.accepted = 2;
  const DraftOutcome second = session->Draft(input);
  ASSERT_TRUE(second.status.ok()) << second.status;
  EXPECT_THAT(second.accepted, Optional(2));
  const auto requests = service_.DraftRequests();
  ASSERT_THAT(requests, SizeIs(3));
  EXPECT_TRUE(requests[1].has_accepted());
  EXPECT_FALSE(requests[2].has_accepted());
}

TEST_P(DraftSessionTest, ClosesWithTheRecordOfTheRequest) {
  auto client = MakeClient();
  auto session = OpenSession(*client);
  Worker worker;
  worker.Grow(3);
  const DraftOutcome outcome = session->Draft(worker.Call(0, 2));
  const auto record = session->Close({outcome.tree.tokens[0], outcome.tree.tokens[1] + 1});
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->spec_steps, 1);
  EXPECT_EQ(record->accepted_draft_tokens, 1);
  EXPECT_THAT(service_.Sessions(), IsEmpty());
  EXPECT_EQ(session->Close({}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(session->Draft(worker.Call(0, 1)).status.code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_P(DraftSessionTest, ClosesOnTheServerWhenItIsDestroyed) {
  auto client = MakeClient();
  OpenSession(*client).reset();
  EXPECT_THAT(service_.Sessions(), IsEmpty());
}

TEST_P(DraftSessionTest, OutlivesItsClient) {
  auto client = MakeClient();
  auto session = OpenSession(*client);
  client.reset();
  Worker worker;
  worker.Grow(2);
  EXPECT_TRUE(session->Draft(worker.Call(0, 1)).status.ok());
}

TEST_P(DraftSessionTest, SaysWhereToResendFromWhenTheServerLacksRows) {
  auto client = MakeClient();
  auto session = OpenSession(*client);
  Worker worker;
  worker.Grow(4);
  ASSERT_TRUE(session->Draft(worker.Call(0, 1)).status.ok());
  worker.Grow(9);
  const DraftOutcome gap = session->Draft(worker.Call(7, 1));
  EXPECT_EQ(gap.status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(gap.resend_from, Optional(4));
  EXPECT_THAT(gap.tree.tokens, IsEmpty());
  const DraftOutcome again = session->Draft(worker.Call(*gap.resend_from, 2));
  ASSERT_TRUE(again.status.ok()) << again.status;
  EXPECT_THAT(again.tree.tokens, ElementsAreArray(worker.ExpectedDraft(2)));
  ExpectServerHolds(worker);
}

TEST_P(DraftSessionTest, FetchesMissingRowsFromTheSourceByItself) {
  Worker worker;
  auto client = MakeClient();
  auto session = OpenSession(*client, {.row_source = worker.Source()});
  worker.Grow(4);
  ASSERT_TRUE(session->Draft(worker.Call(0, 1)).status.ok());
  worker.Grow(260);
  const DraftOutcome outcome = session->Draft(worker.Call(258, 3));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.resyncs, 1);
  EXPECT_THAT(outcome.tree.tokens, ElementsAreArray(worker.ExpectedDraft(3)));
  ExpectServerHolds(worker);
}

TEST_P(DraftSessionTest, ReopensAndReplaysWhenTheServerHasForgottenTheSession) {
  Worker worker;
  auto client = MakeClient();
  auto session = OpenSession(*client, {.row_source = worker.Source()});
  worker.Grow(120);
  ASSERT_TRUE(session->Draft(worker.Call(0, 1)).status.ok());
  const std::string old_id = session->id();
  service_.ForgetSessions();
  worker.Grow(122);
  const DraftOutcome outcome = session->Draft(worker.Call(120, 3));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.resyncs, 1);
  EXPECT_NE(session->id(), old_id);
  EXPECT_THAT(outcome.tree.tokens, ElementsAreArray(worker.ExpectedDraft(3)));
  ExpectServerHolds(worker);
}

TEST_P(DraftSessionTest, LeavesTheReplayToTheWorkerWhenItHasNoSource) {
  auto client = MakeClient();
  auto session = OpenSession(*client);
  Worker worker;
  worker.Grow(6);
  ASSERT_TRUE(session->Draft(worker.Call(0, 1)).status.ok());
  service_.ForgetSessions();
  worker.Grow(7);
  for (int round = 0; round < 2; ++round) {  // the second one knows without asking
    const DraftOutcome lost = session->Draft(worker.Call(6, 1));
    EXPECT_EQ(lost.status.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(lost.resend_from, Optional(0));
    EXPECT_EQ(lost.attempts, round == 0 ? 1 : 0);
  }
  const DraftOutcome again = session->Draft(worker.Call(0, 2));
  ASSERT_TRUE(again.status.ok()) << again.status;
  EXPECT_THAT(again.tree.tokens, ElementsAreArray(worker.ExpectedDraft(2)));
  ExpectServerHolds(worker);
}

TEST_P(DraftSessionTest, GivesUpOnAServerThatForgetsTheSessionEveryTime) {
  Worker worker;
  auto client = MakeClient();
  auto session = OpenSession(*client, {.row_source = worker.Source()});
  service_.before_draft = [](const v1::DraftRequest&) {
    return WithReason(absl::NotFoundError("gone"), kReasonSessionUnknown);
  };
  worker.Grow(3);
  const DraftOutcome outcome = session->Draft(worker.Call(2, 1));
  EXPECT_EQ(outcome.status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(outcome.resyncs, 2);
}

TEST_P(DraftSessionTest, PassesOnWhyTheServerRefuses) {
  auto client = MakeClient();
  auto session = OpenSession(*client);
  service_.before_draft = [](const v1::DraftRequest&) {
    ErrorDetail detail;
    detail.reason = kReasonQueueFull;
    detail.retry_after = absl::Milliseconds(40);
    return WithDetail(absl::ResourceExhaustedError("full"), detail);
  };
  Worker worker;
  worker.Grow(1);
  const DraftOutcome outcome = session->Draft(worker.Call(0, 1));
  EXPECT_EQ(outcome.status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(outcome.attempts, 1);
  EXPECT_THAT(DetailOf(outcome.status).retry_after, Optional(absl::Milliseconds(40)));
  EXPECT_THAT(outcome.tree.tokens, IsEmpty());
}

TEST_P(DraftSessionTest, DoesNotAskADrainingServerAgain) {
  auto client = MakeClient();
  auto session = OpenSession(*client);
  service_.before_draft = [](const v1::DraftRequest&) {
    return WithReason(absl::UnavailableError("draining"), kReasonDraining);
  };
  Worker worker;
  worker.Grow(1);
  const DraftOutcome outcome = session->Draft(worker.Call(0, 1));
  EXPECT_EQ(outcome.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(outcome.attempts, 1);
}

TEST_P(DraftSessionTest, StopsSendingAPromptThatIsPastTheServersContext) {
  service_.limits.set_max_context(150);
  auto client = MakeClient();
  auto session = OpenSession(*client);
  Worker worker;
  worker.Grow(350);
  const DraftOutcome outcome = session->Draft(worker.Call(0, 2));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.no_draft_reason, v1::NO_DRAFT_REASON_CONTEXT_LIMIT);
  EXPECT_EQ(outcome.length, 100);
  EXPECT_THAT(service_.DraftRequests(), SizeIs(2));
}

TEST_P(DraftSessionTest, ComesBackWithoutADraftWhenTheDeadlinePasses) {
  auto client = MakeClient();
  auto session = OpenSession(*client);
  absl::Notification release;
  service_.before_draft = [&](const v1::DraftRequest&) {
    release.WaitForNotification();
    return absl::OkStatus();
  };
  Worker worker;
  worker.Grow(2);
  DraftInput input = worker.Call(0, 2);
  input.deadline = absl::Milliseconds(30);
  const DraftOutcome outcome = session->Draft(input);
  EXPECT_EQ(outcome.status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(outcome.tree.tokens, IsEmpty());
  release.Notify();
  // The late answer is nobody's: the next call gets its own.
  const DraftOutcome next = session->Draft(worker.Call(0, 3));
  ASSERT_TRUE(next.status.ok()) << next.status;
  EXPECT_THAT(next.tree.tokens, ElementsAreArray(worker.ExpectedDraft(3)));
}

TEST_P(DraftSessionTest, RefusesRowsThatContradictTheManifestBeforeSendingThem) {
  auto client = MakeClient();
  auto session = OpenSession(*client);
  Worker worker;
  worker.Grow(3);
  DraftInput input = worker.Call(0, 1);
  input.tokens = input.tokens.subspan(1);
  EXPECT_EQ(session->Draft(input).status.code(), absl::StatusCode::kInvalidArgument);
  input = worker.Call(0, 1);
  input.rows = *HiddenRows::Create(DType::kF32, 3, 4, std::string_view(worker.bytes()).substr(0, 48));
  EXPECT_EQ(session->Draft(input).status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(service_.DraftRequests(), IsEmpty());
}

}  // namespace
}  // namespace aerie
