// Rows that the server lacks: who notices, and who brings them.
#include "common/error_detail.h"
#include "tests/client/session_fixture.h"

namespace aerie {
namespace {

using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::Optional;

class ResyncTest : public SessionFixture {};

INSTANTIATE_TEST_SUITE_P(Transports, ResyncTest,
                         ::testing::Values(TransportKind::kUnary, TransportKind::kStream),
                         TransportName);

TEST_P(ResyncTest, SaysWhereToResendFromWhenTheServerLacksRows) {
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

TEST_P(ResyncTest, FetchesMissingRowsFromTheSourceByItself) {
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

TEST_P(ResyncTest, ReopensAndReplaysWhenTheServerHasForgottenTheSession) {
  Worker worker;
  auto client = MakeClient();
  auto session = OpenSession(*client, {.row_source = worker.Source()});
  worker.Grow(120);
  ASSERT_TRUE(session->Draft(worker.Call(0, 1)).status.ok());
  const std::string old_id = session->id();
  service_.ForgetSessions();
  worker.Grow(122);
  DraftInput call = worker.Call(120, 3);
  call.accepted = 1;
  const DraftOutcome outcome = session->Draft(call);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.resyncs, 1);
  EXPECT_NE(session->id(), old_id);
  EXPECT_FALSE(service_.DraftRequests().back().has_accepted())
      << "the new session has had no proposal";
  EXPECT_THAT(outcome.tree.tokens, ElementsAreArray(worker.ExpectedDraft(3)));
  ExpectServerHolds(worker);
}

TEST_P(ResyncTest, LeavesTheReplayToTheWorkerWhenItHasNoSource) {
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

TEST_P(ResyncTest, GivesUpOnAServerThatForgetsTheSessionEveryTime) {
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

}  // namespace
}  // namespace aerie
