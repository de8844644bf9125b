// Lost connections: what is repeated, what is not, and what a worker pays for a server that is
// away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "absl/time/clock.h"
#include "client/draft_client.h"
#include "common/error_detail.h"
#include "tests/client/fake_draft_service.h"
#include "tests/client/test_server.h"
#include "tests/client/worker.h"

namespace aerie {
namespace {

using ::testing::ElementsAreArray;
using ::testing::SizeIs;

class ReconnectTest : public ::testing::Test {
 protected:
  std::unique_ptr<DraftClient> MakeClient(ClientOptions options) {
    auto client = DraftClient::Create(server_.address(), options);
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }
  static ClientOptions Patient(TransportKind transport) {
    return {.transport = transport, .deadline = absl::Seconds(30), .patience = absl::Seconds(20)};
  }
  std::unique_ptr<DraftSession> OpenSession(DraftClient& client, SessionSettings settings = {}) {
    auto session = client.Open(FakeDraftService::FittingManifest(), std::move(settings));
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }

  FakeDraftService service_;
  TestServer server_{&service_};
};

TEST_F(ReconnectTest, RepeatsACallWhoseAnswerWasLostAndGetsTheStoredOne) {
  auto client = MakeClient(Patient(TransportKind::kUnary));
  auto session = OpenSession(*client);
  Worker worker;
  worker.Grow(3);
  ASSERT_TRUE(session->Draft(worker.Call(0, 2)).status.ok());
  int to_lose = 2;
  service_.after_draft = [&](const v1::DraftRequest&) {
    return to_lose-- > 0 ? absl::UnavailableError("connection reset") : absl::OkStatus();
  };
  worker.Grow(5);
  const DraftOutcome outcome = session->Draft(worker.Call(3, 2));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.attempts, 3);
  EXPECT_THAT(outcome.tree.tokens, ElementsAreArray(worker.ExpectedDraft(2)));
  const auto requests = service_.DraftRequests();
  ASSERT_THAT(requests, SizeIs(4));
  EXPECT_NE(requests[1].seq(), requests[0].seq());
  EXPECT_EQ(requests[2].seq(), requests[1].seq());
  EXPECT_EQ(requests[3].seq(), requests[1].seq());
  // Served once: judged once, and its rows are there once.
  EXPECT_EQ(service_.Sessions().begin()->second.record.spec_steps, 1);
  EXPECT_EQ(service_.Sessions().begin()->second.tokens.size(), 5u);
}

TEST_F(ReconnectTest, KeepsAUnarySessionAcrossALostConnection) {
  auto client = MakeClient(Patient(TransportKind::kUnary));
  auto session = OpenSession(*client);
  Worker worker;
  worker.Grow(3);
  ASSERT_TRUE(session->Draft(worker.Call(0, 2)).status.ok());
  server_.Stop();
  server_.Start();
  worker.Grow(4);
  const DraftOutcome outcome = session->Draft(worker.Call(3, 2));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.resyncs, 0);
  EXPECT_THAT(outcome.tree.tokens, ElementsAreArray(worker.ExpectedDraft(2)));
}

TEST_F(ReconnectTest, ReplaysOnANewStreamAfterTheOldOneBroke) {
  Worker worker;
  auto client = MakeClient(Patient(TransportKind::kStream));
  auto session = OpenSession(*client, {.row_source = worker.Source()});
  worker.Grow(130);
  ASSERT_TRUE(session->Draft(worker.Call(0, 2)).status.ok());
  server_.Stop();
  server_.Start();
  worker.Grow(131);
  const DraftOutcome outcome = session->Draft(worker.Call(130, 2));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.resyncs, 1);
  EXPECT_THAT(outcome.tree.tokens, ElementsAreArray(worker.ExpectedDraft(2)));
  EXPECT_EQ(service_.streams_started(), 2);
}

TEST_F(ReconnectTest, ResyncsAfterAServerRestart) {
  Worker worker;
  auto client = MakeClient(Patient(TransportKind::kUnary));
  auto session = OpenSession(*client, {.row_source = worker.Source()});
  worker.Grow(8);
  ASSERT_TRUE(session->Draft(worker.Call(0, 2)).status.ok());
  server_.Stop();
  service_.ForgetSessions();
  service_.limits.set_max_rows_per_call(3);  // the new server has other limits
  server_.Start();
  worker.Grow(9);
  const DraftOutcome outcome = session->Draft(worker.Call(8, 2));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.resyncs, 1);
  EXPECT_THAT(outcome.tree.tokens, ElementsAreArray(worker.ExpectedDraft(2)));
  EXPECT_EQ(service_.DraftRequests()[2].token_ids_size(), 3);
}

class FailOpenTest : public ReconnectTest, public ::testing::WithParamInterface<TransportKind> {};

INSTANTIATE_TEST_SUITE_P(Transports, FailOpenTest,
                         ::testing::Values(TransportKind::kUnary, TransportKind::kStream),
                         [](const auto& test) {
                           return test.param == TransportKind::kUnary ? "Unary" : "Stream";
                         });

TEST_P(FailOpenTest, CallsFailAtOnceWhileTheServerIsAwayAndWorkAgainOnceItIsBack) {
  Worker worker;
  auto client = MakeClient(
      {.transport = GetParam(), .deadline = absl::Seconds(30), .patience = absl::Milliseconds(20)});
  auto session = OpenSession(*client, {.row_source = worker.Source()});
  worker.Grow(3);
  ASSERT_TRUE(session->Draft(worker.Call(0, 2)).status.ok());
  server_.Stop();
  worker.Grow(4);
  const DraftOutcome first = session->Draft(worker.Call(3, 2));
  EXPECT_EQ(first.status.code(), absl::StatusCode::kUnavailable);
  for (int64_t length = 5; length < 50; ++length) {
    worker.Grow(length);
    const DraftOutcome away = session->Draft(worker.Call(length - 1, 2));
    EXPECT_EQ(away.status.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(away.attempts, 0);  // not even tried: this costs the worker nothing
  }
  server_.Start();
  // Nothing tells the worker: it goes on asking, round by round.
  DraftOutcome outcome;
  const absl::Time give_up = absl::Now() + absl::Seconds(60);
  do {
    std::this_thread::yield();
    outcome = session->Draft(worker.Call(worker.length() - 1, 2));
  } while (!outcome.status.ok() && absl::Now() < give_up);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_THAT(outcome.tree.tokens, ElementsAreArray(worker.ExpectedDraft(2)));
}

TEST_P(FailOpenTest, SaysThatThereIsNoServerInsteadOfWaitingForOne) {
  server_.Stop();
  auto client = MakeClient(
      {.transport = GetParam(), .deadline = absl::Seconds(30), .patience = absl::Milliseconds(20)});
  EXPECT_EQ(client->Open(FakeDraftService::FittingManifest(), {}).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(ReconnectTest, RefusesOptionsThatCannotWork) {
  for (const ClientOptions& options : std::vector<ClientOptions>{{.deadline = absl::ZeroDuration()},
                                                                 {.patience = -absl::Seconds(1)},
                                                                 {.max_message_bytes = 1000},
                                                                 {.keepalive = absl::Seconds(1)}}) {
    EXPECT_EQ(DraftClient::Create("localhost:1", options).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(DraftClient::Create("", {}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace aerie
