// What a session does for its worker, over both transports.
#include "client/draft_session.h"

#include "absl/synchronization/notification.h"
#include "common/error_detail.h"
#include "common/rpc/codec.h"
#include "tests/client/session_fixture.h"

namespace aerie {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::SizeIs;

class DraftSessionTest : public SessionFixture {};

INSTANTIATE_TEST_SUITE_P(Transports, DraftSessionTest,
                         ::testing::Values(TransportKind::kUnary, TransportKind::kStream),
                         TransportName);

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

TEST_P(DraftSessionTest, TellsTheServerWhenToStopSoThatACutDraftStillArrives) {
  auto client = MakeClient();
  auto session = OpenSession(*client);
  Worker worker;
  worker.Grow(1);
  DraftInput input = worker.Call(0, 1);
  input.deadline = absl::Seconds(20);
  ASSERT_TRUE(session->Draft(input).status.ok());
  const v1::DraftRequest request = service_.DraftRequests().back();
  ASSERT_TRUE(request.has_time_limit());
  const absl::Duration limit = rpc::DecodeDuration(request.time_limit());
  EXPECT_GT(limit, absl::ZeroDuration());
  EXPECT_LE(limit, absl::Seconds(18));
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
  EXPECT_EQ(session->Draft(worker.Call(0, 1)).status.code(), absl::StatusCode::kFailedPrecondition);
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
  // Shared: on a busy machine the call may reach the service when this test is over.
  const auto release = std::make_shared<absl::Notification>();
  service_.before_draft = [release](const v1::DraftRequest&) {
    release->WaitForNotification();
    return absl::OkStatus();
  };
  Worker worker;
  worker.Grow(2);
  DraftInput input = worker.Call(0, 2);
  input.deadline = absl::Milliseconds(30);
  const DraftOutcome outcome = session->Draft(input);
  EXPECT_EQ(outcome.status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(DetailOf(outcome.status).reason, kReasonDeadline);
  EXPECT_THAT(outcome.tree.tokens, IsEmpty());
  release->Notify();
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
  input.rows =
      *HiddenRows::Create(DType::kF32, 3, 4, std::string_view(worker.bytes()).substr(0, 48));
  EXPECT_EQ(session->Draft(input).status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(service_.DraftRequests(), IsEmpty());
}

}  // namespace
}  // namespace aerie
