// How a DraftStream ends, and what it leaves behind.
#include <string>
#include <thread>

#include "common/error_detail.h"
#include "common/rpc/codec.h"
#include "common/rpc/status_codec.h"
#include "common/rpc/tree_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/transport/in_process_server.h"
#include "tests/server/transport/test_stream.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using ::testing::ElementsAre;

TEST(DraftStreamEndTest, AHalfCloseIsAnsweredToTheEndAndClosesTheSessionsOfTheStream) {
  InProcessServer server;
  TestStream stream(server.stub());
  TestSequence first(1);
  TestSequence second(2);
  stream.Open(&first);
  stream.Open(&second);
  stream.ExpectRightDraft(&first, 4, 2);
  EXPECT_TRUE(stream.HalfClose().ok());
  server.observer().WaitForEnded(2);
  for (const SessionRecord& record : server.observer().ended()) {
    EXPECT_EQ(record.end, SessionEnd::kStreamClosed);
  }
  EXPECT_EQ(server.UsedPages(), 0);
  server.rpcs().WaitForHandled("DraftStream", 1);
  EXPECT_THAT(server.rpcs().Of("DraftStream").handled, ElementsAre(absl::StatusCode::kOk));
  EXPECT_EQ(server.rpcs().Of("DraftStream").type, RpcType::kBidiStream);
}

TEST(DraftStreamEndTest, AHalfCloseWithARoundOpenStillGetsItsReply) {
  Gate gate;
  InProcessOptions options;
  options.model.before_step = gate.Hook();
  InProcessServer server(options);
  grpc::ClientContext context;
  auto stream = server.stub().DraftStream(&context);
  TestSequence sequence(1);
  OpenUnary(server.stub(), &sequence);
  gate.Close();
  v1::DraftStreamRequest request;
  *request.mutable_draft() = sequence.NextRequest(3, 2);
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->WritesDone());
  gate.WaitUntilReached();
  gate.Open();
  v1::DraftStreamResponse response;
  ASSERT_TRUE(stream->Read(&response));
  sequence.Commit(3);
  EXPECT_EQ(rpc::DecodeDraftTree(response.draft().tree()).value(), sequence.Expected(2));
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST(DraftStreamEndTest, AClientThatVanishesMidRoundLosesItsSessionsAndHurtsNobody) {
  Gate gate;
  InProcessOptions options;
  options.model.before_step = gate.Hook();
  InProcessServer server(options);
  TestSequence bystander(2);
  OpenUnary(server.stub(), &bystander);
  ExpectRightDraft(server.stub(), &bystander, 3, 2);
  {
    TestStream stream(server.stub());
    TestSequence lost(1);
    stream.Open(&lost);
    stream.ExpectRightDraft(&lost, 4, 2);
    gate.Close();
    stream.SendDraft(lost.NextRequest(1, 3));
    gate.WaitUntilReached();
    lost.Commit(1);
    stream.SendDraft(lost.NextRequest(1, 3));  // one more waits behind it
    stream.Cancel();
  }
  gate.Open();
  server.observer().WaitForEnded(1);
  EXPECT_EQ(server.observer().last_ended().end, SessionEnd::kStreamClosed);
  server.rpcs().WaitForHandled("DraftStream", 1);
  ExpectRightDraft(server.stub(), &bystander, 1, 4);
  EXPECT_EQ(server.UsedPages(), 1);
}

TEST(DraftStreamEndTest, ACancelledStreamIsCountedAsCancelledAndNotAsEnded) {
  InProcessServer server;
  {
    TestStream stream(server.stub());
    TestSequence sequence(1);
    stream.Open(&sequence);
    stream.Cancel();
  }
  server.rpcs().WaitForHandled("DraftStream", 1);
  EXPECT_THAT(server.rpcs().Of("DraftStream").handled, ElementsAre(absl::StatusCode::kCancelled));
}

TEST(DraftStreamEndTest, AChainStopsWhenItsStreamIsCancelled) {
  Gate gate;
  InProcessOptions options;
  options.model.before_step = gate.Hook();
  InProcessServer server(options);
  // When the server hears of a cancel is the network's choice, so one of many streams is enough.
  for (uint64_t attempt = 1; attempt <= 100; ++attempt) {
    TestSequence sequence(attempt);
    OpenUnary(server.stub(), &sequence);  // not the stream's, so that its end does not close it
    gate.Close();
    {
      TestStream stream(server.stub());
      stream.SendDraft(sequence.NextRequest(4, 9));
      gate.WaitUntilReached();
      stream.Cancel();
    }
    gate.Open();
    server.observer().WaitForRounds(attempt);
    if (server.observer().last_round().proposed < 9) return;
  }
  FAIL() << "no chain was cut";
}

TEST(DraftStreamEndTest, ADeadlineEndsTheStream) {
  InProcessServer server;
  TestStream stream(server.stub(), std::chrono::milliseconds(50));
  EXPECT_EQ(stream.ReadEnd().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST(DraftStreamEndTest, DrainingAnswersTheOpenRoundAndThenEndsTheStream) {
  Gate gate;
  InProcessOptions options;
  options.model.before_step = gate.Hook();
  InProcessServer server(options);
  TestStream stream(server.stub());
  TestSequence sequence(1);
  stream.Open(&sequence);
  gate.Close();
  const uint64_t id = stream.SendDraft(sequence.NextRequest(3, 2));
  gate.WaitUntilReached();
  server.service().DrainStreams();
  EXPECT_FALSE(server.service().AwaitStreams(absl::InfinitePast()));
  gate.Open();
  const v1::DraftStreamResponse response = stream.Read();
  EXPECT_EQ(response.id(), id);
  sequence.Commit(3);
  EXPECT_EQ(rpc::DecodeDraftTree(response.draft().tree()).value(), sequence.Expected(2));
  EXPECT_THAT(rpc::FromGrpcStatus(stream.ReadEnd()),
              Refuses(absl::StatusCode::kUnavailable, kReasonDraining));
  server.observer().WaitForEnded(1);
  server.rpcs().WaitForHandled("DraftStream", 1);
  EXPECT_THAT(server.rpcs().Of("DraftStream").handled, ElementsAre(absl::StatusCode::kUnavailable));
}

TEST(DraftStreamEndTest, DrainingEndsAnIdleStreamAtOnceAndRefusesNewOnes) {
  InProcessServer server;
  TestStream stream(server.stub());
  TestSequence sequence(1);
  stream.Open(&sequence);
  server.service().DrainStreams();
  EXPECT_THAT(rpc::FromGrpcStatus(stream.ReadEnd()),
              Refuses(absl::StatusCode::kUnavailable, kReasonDraining));
  TestStream late(server.stub());
  EXPECT_THAT(rpc::FromGrpcStatus(late.ReadEnd()),
              Refuses(absl::StatusCode::kUnavailable, kReasonDraining));
  EXPECT_TRUE(server.service().AwaitStreams(absl::InfiniteFuture()));
}

TEST(DraftStreamEndTest, ShutdownPastItsDeadlineCancelsWhatIsOpen) {
  InProcessServer server;
  TestStream stream(server.stub());
  TestSequence sequence(1);
  stream.Open(&sequence);
  server.server().Shutdown(absl::InfinitePast());
  EXPECT_FALSE(stream.ReadEnd().ok());
  server.observer().WaitForEnded(1);
}

TEST(DraftStreamEndTest, ManyStreamsThatComeAndGoLeaveNothingBehind) {
  InProcessServer server;
  std::vector<std::thread> clients;
  for (uint64_t client = 0; client < 4; ++client) {
    clients.emplace_back([&server, client] {
      auto stub = v1::DraftService::NewStub(server.NewChannel());
      for (int i = 0; i < 25; ++i) {
        TestStream stream(*stub);
        TestSequence sequence(client);
        stream.Open(&sequence);
        stream.ExpectRightDraft(&sequence, 2, 2);
        stream.SendDraft(sequence.NextRequest(1, 3));
        if (i % 3 == 0) stream.Cancel();
      }
    });
  }
  for (std::thread& client : clients) client.join();
  server.observer().WaitForEnded(100);
  server.rpcs().WaitForHandled("DraftStream", 100);
  EXPECT_EQ(server.UsedPages(), 0);
}

}  // namespace
}  // namespace aerie
