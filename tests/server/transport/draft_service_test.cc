// The unary calls of the service over a real channel.
#include "server/transport/draft_service.h"

#include <atomic>
#include <string>
#include <thread>

#include "common/error_detail.h"
#include "common/rpc/codec.h"
#include "common/rpc/status_codec.h"
#include "common/rpc/tree_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/transport/in_process_server.h"
#include "tests/testing/sequences.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

TEST(DraftServiceTest, DraftsWhatTheModelDraftsInEveryDType) {
  InProcessServer server;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    TestSequence sequence(7, dtype);
    OpenUnary(server.stub(), &sequence);
    ExpectRightDraft(server.stub(), &sequence, 5, 4);
    ExpectRightDraft(server.stub(), &sequence, 1, 3);
    ExpectRightDraft(server.stub(), &sequence, 2, 1);
  }
}

TEST(DraftServiceTest, OpeningTellsOptionsInForceAndLease) {
  InProcessOptions options;
  options.engine.max_k = 6;
  options.engine.session_lease = absl::Seconds(77);
  InProcessServer server(options);
  v1::OpenSessionRequest request = TestSequence(1).OpenRequest();
  request.mutable_options()->set_max_k(4);
  grpc::ClientContext context;
  v1::OpenSessionResponse response;
  ASSERT_TRUE(server.stub().OpenSession(&context, request, &response).ok());
  EXPECT_EQ(response.options().max_k(), 4u);
  EXPECT_EQ(rpc::DecodeDuration(response.lease()), absl::Seconds(77));
}

TEST(DraftServiceTest, AStatelessCallDraftsAndKeepsNothing) {
  InProcessServer server;
  TestSequence sequence(3);
  v1::DraftRequest request = sequence.NextRequest(6, 4);
  rpc::EncodeManifest(FittingManifest(), request.mutable_manifest());
  grpc::ClientContext context;
  v1::DraftResponse response;
  const grpc::Status status = server.stub().Draft(&context, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  sequence.Commit(6);
  EXPECT_EQ(rpc::DecodeDraftTree(response.tree()).value(), sequence.Expected(4));
  EXPECT_EQ(server.UsedPages(), 0);
}

TEST(DraftServiceTest, AReplyCarriesSeqMethodAndTimes) {
  InProcessServer server;
  TestSequence sequence(3);
  OpenUnary(server.stub(), &sequence);
  v1::DraftRequest request = sequence.NextRequest(6, 2);
  request.set_seq(41);
  grpc::ClientContext context;
  v1::DraftResponse response;
  ASSERT_TRUE(server.stub().Draft(&context, request, &response).ok());
  EXPECT_EQ(response.seq(), 41u);
  EXPECT_EQ(response.method(), v1::PROPOSAL_METHOD_GREEDY_CHAIN);
  EXPECT_FALSE(response.has_accepted());
  const absl::Duration total = rpc::DecodeDuration(response.timing().total());
  EXPECT_GT(total, absl::ZeroDuration());
  EXPECT_GE(total, rpc::DecodeDuration(response.timing().queue()));
}

TEST(DraftServiceTest, WithoutKTheReplySaysThatNoneWasAskedFor) {
  InProcessServer server;
  TestSequence sequence(3);
  OpenUnary(server.stub(), &sequence);
  grpc::ClientContext context;
  v1::DraftResponse response;
  ASSERT_TRUE(server.stub().Draft(&context, sequence.NextRequest(6, 0), &response).ok());
  EXPECT_EQ(response.tree().token_ids_size(), 0);
  EXPECT_EQ(response.no_draft_reason(), v1::NO_DRAFT_REASON_NOT_ASKED);
}

TEST(DraftServiceTest, PastTheContextTheReplySaysSoAndDraftsNothing) {
  InProcessOptions options;
  options.engine.max_context = 5;
  InProcessServer server(options);
  TestSequence sequence(3);
  OpenUnary(server.stub(), &sequence);
  grpc::ClientContext context;
  v1::DraftResponse response;
  ASSERT_TRUE(server.stub().Draft(&context, sequence.NextRequest(6, 3), &response).ok());
  EXPECT_EQ(response.tree().token_ids_size(), 0);
  EXPECT_EQ(response.no_draft_reason(), v1::NO_DRAFT_REASON_CONTEXT_LIMIT);
}

TEST(DraftServiceTest, TellsAcceptanceInTheNextReplyAndAtTheClose) {
  InProcessServer server;
  TestSequence sequence(3);
  OpenUnary(server.stub(), &sequence);
  grpc::ClientContext first;
  v1::DraftResponse proposal;
  ASSERT_TRUE(server.stub().Draft(&first, sequence.NextRequest(4, 3), &proposal).ok());
  sequence.Commit(4);

  // The target keeps two of three and adds another token.
  v1::DraftRequest next = sequence.NextRequest(3, 2);
  next.set_token_ids(0, proposal.tree().token_ids(0));
  next.set_token_ids(1, proposal.tree().token_ids(1));
  next.set_token_ids(2, (proposal.tree().token_ids(2) + 1) % 101);
  next.set_accepted(2);
  grpc::ClientContext second;
  v1::DraftResponse reply;
  ASSERT_TRUE(server.stub().Draft(&second, next, &reply).ok());
  ASSERT_TRUE(reply.has_accepted());
  EXPECT_EQ(reply.accepted(), 2u);

  v1::CloseSessionRequest close;
  close.set_session_id(sequence.session_id);
  close.add_final_token_ids((reply.tree().token_ids(0) + 1) % 101);
  grpc::ClientContext third;
  v1::CloseSessionResponse closed;
  ASSERT_TRUE(server.stub().CloseSession(&third, close, &closed).ok());
  EXPECT_THAT(closed.acceptance().acceptance_histogram(), ElementsAre(1, 0, 1));
  EXPECT_EQ(closed.acceptance().num_accepted_draft_tokens(), 2u);
  EXPECT_EQ(closed.acceptance().num_draft_tokens(), 5u);
  EXPECT_EQ(closed.acceptance().num_spec_steps(), 2u);
  EXPECT_EQ(closed.acceptance().completion_tokens(), 4u);
  EXPECT_EQ(server.UsedPages(), 0);
}

TEST(DraftServiceTest, RefusesWhatIsFullAndSaysWhenToRetry) {
  InProcessOptions options;
  options.engine.max_sessions = 1;
  InProcessServer server(options);
  TestSequence sequence(1);
  OpenUnary(server.stub(), &sequence);
  grpc::ClientContext context;
  v1::OpenSessionResponse response;
  const absl::Status status =
      rpc::FromGrpcStatus(server.stub().OpenSession(&context, sequence.OpenRequest(), &response));
  EXPECT_THAT(status, Refuses(absl::StatusCode::kResourceExhausted, kReasonSessionLimit));
  EXPECT_TRUE(DetailOf(status).retry_after.has_value());
}

TEST(DraftServiceTest, AClientThatGivesUpInTheQueueLeavesItsSessionAndOthersIntact) {
  Gate gate;
  InProcessOptions options;
  options.model.before_step = gate.Hook();
  InProcessServer server(options);
  TestSequence hasty(1);
  TestSequence bystander(2);
  OpenUnary(server.stub(), &hasty);
  OpenUnary(server.stub(), &bystander);
  ExpectRightDraft(server.stub(), &hasty, 4, 2);
  ExpectRightDraft(server.stub(), &bystander, 3, 2);

  gate.Close();
  std::thread blocker([&] { ExpectRightDraft(server.stub(), &bystander, 1, 3); });
  gate.WaitUntilReached();
  // Waits behind the pass that is blocked, past its deadline: it must not be run any more.
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
  v1::DraftResponse response;
  const grpc::Status status = server.stub().Draft(&context, hasty.NextRequest(2, 2), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  gate.Open();
  blocker.join();

  ExpectRightDraft(server.stub(), &hasty, 3, 4);
  ExpectRightDraft(server.stub(), &bystander, 1, 3);
}

TEST(DraftServiceTest, AChainStopsWhenItsClientGivesUpAndItsRowsStay) {
  Gate gate;
  InProcessOptions options;
  options.model.before_step = gate.Hook();
  InProcessServer server(options);
  // When the server hears of a cancel is the network's choice, so one of many calls is enough.
  for (uint64_t attempt = 1; attempt <= 100; ++attempt) {
    TestSequence sequence(attempt);
    OpenUnary(server.stub(), &sequence);
    gate.Close();
    grpc::ClientContext context;
    std::thread client([&] {
      v1::DraftResponse response;
      EXPECT_EQ(server.stub().Draft(&context, sequence.NextRequest(4, 9), &response).error_code(),
                grpc::StatusCode::CANCELLED);
    });
    gate.WaitUntilReached();  // the pass that takes its rows
    context.TryCancel();
    client.join();
    gate.Open();
    server.observer().WaitForRounds(static_cast<size_t>(2 * attempt - 1));
    const bool cut = server.observer().last_round().proposed < 9;
    sequence.Commit(4);
    ExpectRightDraft(server.stub(), &sequence, 1, 2);
    if (cut) return;
  }
  FAIL() << "no chain was cut";
}

TEST(DraftServiceTest, BeforeTheDrafterIsLoadedEveryCallIsUnavailable) {
  InProcessOptions options;
  options.serve = false;
  InProcessServer server(options);
  grpc::ClientContext context;
  v1::GetServerInfoResponse info;
  const absl::Status status = rpc::FromGrpcStatus(server.stub().GetServerInfo(&context, {}, &info));
  EXPECT_THAT(status, Refuses(absl::StatusCode::kUnavailable, kReasonLoading));
  EXPECT_EQ(DetailOf(status).retry_after, absl::Seconds(1));
  grpc::ClientContext open_context;
  v1::OpenSessionResponse opened;
  EXPECT_EQ(
      server.stub().OpenSession(&open_context, TestSequence(1).OpenRequest(), &opened).error_code(),
      grpc::StatusCode::UNAVAILABLE);
  grpc::ClientContext stream_context;
  auto stream = server.stub().DraftStream(&stream_context);
  v1::DraftStreamResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_THAT(rpc::FromGrpcStatus(stream->Finish()),
              Refuses(absl::StatusCode::kUnavailable, kReasonLoading));
}

TEST(DraftServiceTest, WhileDrainingOpenAndDraftAreUnavailableAndCloseIsServed) {
  InProcessServer server;
  TestSequence sequence(1);
  OpenUnary(server.stub(), &sequence);
  EXPECT_TRUE(server.engine().Drain(absl::InfiniteFuture()));
  grpc::ClientContext open_context;
  v1::OpenSessionResponse opened;
  EXPECT_THAT(rpc::FromGrpcStatus(
                  server.stub().OpenSession(&open_context, sequence.OpenRequest(), &opened)),
              Refuses(absl::StatusCode::kUnavailable, kReasonDraining));
  grpc::ClientContext draft_context;
  v1::DraftResponse drafted;
  EXPECT_THAT(rpc::FromGrpcStatus(
                  server.stub().Draft(&draft_context, sequence.NextRequest(1, 1), &drafted)),
              Refuses(absl::StatusCode::kUnavailable, kReasonDraining));
  v1::CloseSessionRequest close;
  close.set_session_id(sequence.session_id);
  grpc::ClientContext close_context;
  v1::CloseSessionResponse closed;
  EXPECT_TRUE(server.stub().CloseSession(&close_context, close, &closed).ok());
}

TEST(DraftServiceTest, TellsTheObserverOfEveryCall) {
  InProcessServer server;
  TestSequence sequence(1);
  OpenUnary(server.stub(), &sequence);
  const v1::DraftRequest good = sequence.NextRequest(4, 2);
  v1::DraftRequest bad = good;
  bad.set_session_id("none");
  v1::DraftResponse response;
  {
    grpc::ClientContext context;
    EXPECT_TRUE(server.stub().Draft(&context, good, &response).ok());
  }
  const int64_t sent_bytes = static_cast<int64_t>(response.ByteSizeLong());
  {
    grpc::ClientContext context;
    EXPECT_FALSE(server.stub().Draft(&context, bad, &response).ok());
  }
  server.rpcs().WaitForHandled("Draft", 2);
  const RecordingRpcObserver::Counts counts = server.rpcs().Of("Draft");
  EXPECT_EQ(counts.type, RpcType::kUnary);
  EXPECT_EQ(counts.service, "aerie.v1.DraftService");
  EXPECT_EQ(counts.started, 2);
  EXPECT_EQ(counts.received, 2);
  EXPECT_EQ(counts.received_bytes, static_cast<int64_t>(good.ByteSizeLong() + bad.ByteSizeLong()));
  EXPECT_EQ(counts.sent, 1);
  EXPECT_EQ(counts.sent_bytes, sent_bytes);
  EXPECT_THAT(counts.handled,
              UnorderedElementsAre(absl::StatusCode::kOk, absl::StatusCode::kNotFound));
}

TEST(DraftServiceTest, TellsWithEachCallWhatTheGuardThinksAndWhetherRowsAreRecorded) {
  std::atomic<WiringState> state = WiringState::kOk;
  std::atomic<bool> recording = true;
  InProcessOptions options;
  options.wiring_state = [&state] { return state.load(); };
  options.recording = [&recording] { return recording.load(); };
  InProcessServer server(options);
  const auto ask = [&server] {
    grpc::ClientContext context;
    v1::GetServerInfoResponse info;
    EXPECT_TRUE(server.stub().GetServerInfo(&context, {}, &info).ok());
    return info;
  };
  EXPECT_EQ(ask().wiring_guard().worst(), v1::WIRING_STATE_OK);
  EXPECT_TRUE(ask().recording());
  state = WiringState::kWrong;
  recording = false;
  EXPECT_EQ(ask().wiring_guard().worst(), v1::WIRING_STATE_WRONG);
  EXPECT_FALSE(ask().recording());
}

}  // namespace
}  // namespace aerie
