// Whose trace a session belongs to, what is counted of each answer, and what of its time is told.
#include <string>

#include "common/log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/transport/in_process_server.h"
#include "tests/server/transport/test_stream.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;
using Answered = RecordingRpcObserver::Answered;

constexpr char kOfCall[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
constexpr char kOfSession[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

class CallTraceTest : public ::testing::Test {
 protected:
  // Opens a session by a call with this metadata and this field (empty: without), closes it, and
  // gives the traceparent that its record has.
  std::string TraceOfSession(const std::string& metadata, const std::string& field) {
    v1::OpenSessionRequest open = TestSequence(1).OpenRequest();
    open.set_traceparent(field);
    grpc::ClientContext context;
    if (!metadata.empty()) context.AddMetadata("traceparent", metadata);
    v1::OpenSessionResponse opened;
    EXPECT_TRUE(server_.stub().OpenSession(&context, open, &opened).ok());
    v1::CloseSessionRequest close;
    close.set_session_id(opened.session_id());
    grpc::ClientContext close_context;
    v1::CloseSessionResponse closed;
    EXPECT_TRUE(server_.stub().CloseSession(&close_context, close, &closed).ok());
    const SessionRecord record = server_.observer().last_ended();
    EXPECT_EQ(record.facts.id, opened.session_id());
    return record.facts.traceparent;
  }

  InProcessServer server_;
};

TEST_F(CallTraceTest, ASessionHasTheTraceOfTheCallThatOpenedItUnlessItNamesItsOwn) {
  EXPECT_EQ(TraceOfSession("", ""), "");
  EXPECT_EQ(TraceOfSession(kOfCall, ""), kOfCall);
  EXPECT_EQ(TraceOfSession("", kOfSession), kOfSession);
  EXPECT_EQ(TraceOfSession(kOfCall, kOfSession), kOfSession);
  EXPECT_EQ(server_.rpcs().traces_ignored(), 0);
}

TEST_F(CallTraceTest, WhatCannotBeReadIsCountedAndIgnored) {
  EXPECT_EQ(TraceOfSession("nonsense", ""), "");
  EXPECT_EQ(server_.rpcs().traces_ignored(), 1);
  EXPECT_EQ(TraceOfSession(kOfCall, "nonsense"), kOfCall);
  EXPECT_EQ(server_.rpcs().traces_ignored(), 2);
}

TEST_F(CallTraceTest, SessionsOfAStreamHaveItsTraceUnlessTheyNameTheirOwn) {
  grpc::ClientContext context;
  context.AddMetadata("traceparent", kOfCall);
  const auto stream = server_.stub().DraftStream(&context);
  for (const std::string field : {"", kOfSession}) {
    v1::DraftStreamRequest request;
    *request.mutable_open_session() = TestSequence(1).OpenRequest();
    request.mutable_open_session()->set_traceparent(field);
    ASSERT_TRUE(stream->Write(request));
    v1::DraftStreamResponse response;
    ASSERT_TRUE(stream->Read(&response));
    ASSERT_TRUE(response.has_open_session());
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  server_.observer().WaitForEnded(2);
  std::vector<std::string> traces;
  for (const SessionRecord& record : server_.observer().ended()) {
    traces.push_back(record.facts.traceparent);
  }
  EXPECT_THAT(traces, UnorderedElementsAre(kOfCall, kOfSession));
}

TEST_F(CallTraceTest, EachAnswerOfACallIsCountedWithItsCode) {
  TestSequence sequence(1);
  OpenUnary(server_.stub(), &sequence);
  ExpectRightDraft(server_.stub(), &sequence, 3, 2);
  v1::DraftRequest bad = sequence.NextRequest(1, 1);
  bad.set_session_id("unknown");
  grpc::ClientContext context;
  v1::DraftResponse response;
  EXPECT_FALSE(server_.stub().Draft(&context, bad, &response).ok());
  EXPECT_THAT(
      server_.rpcs().answered(),
      ElementsAre(Answered{CallKind::kOpenSession, RpcType::kUnary, absl::StatusCode::kOk},
                  Answered{CallKind::kDraft, RpcType::kUnary, absl::StatusCode::kOk},
                  Answered{CallKind::kDraft, RpcType::kUnary, absl::StatusCode::kNotFound}));
}

TEST_F(CallTraceTest, EachAnswerOnAStreamIsCountedWithItsOwnCode) {
  TestStream stream(server_.stub());
  TestSequence sequence(1);
  stream.Open(&sequence);
  stream.ExpectRightDraft(&sequence, 3, 2);
  v1::DraftStreamRequest close;
  close.mutable_close_session()->set_session_id("unknown");
  stream.Send(close);
  EXPECT_TRUE(stream.Read().has_error());
  EXPECT_THAT(
      server_.rpcs().answered(),
      ElementsAre(
          Answered{CallKind::kOpenSession, RpcType::kBidiStream, absl::StatusCode::kOk},
          Answered{CallKind::kDraft, RpcType::kBidiStream, absl::StatusCode::kOk},
          Answered{CallKind::kCloseSession, RpcType::kBidiStream, absl::StatusCode::kNotFound}));
  EXPECT_TRUE(stream.HalfClose().ok());
}

TEST_F(CallTraceTest, ReadingAndEncodingOfACallAreToldAndBelongToNoOtherPhase) {
  TestSequence unary(1);
  OpenUnary(server_.stub(), &unary);
  ExpectRightDraft(server_.stub(), &unary, 3, 2);
  TestStream stream(server_.stub());
  TestSequence streamed(2);
  stream.Open(&streamed);
  stream.ExpectRightDraft(&streamed, 3, 2);
  EXPECT_EQ(server_.observer().encoded(), 2);
  ASSERT_EQ(server_.observer().rounds().size(), 2u);
  for (const RoundRecord& round : server_.observer().rounds()) {
    EXPECT_GT(round.copy_in, absl::ZeroDuration());
    EXPECT_LE(round.copy_in + round.queue_wait + round.extend_time + round.step_time, round.total);
  }
  EXPECT_TRUE(stream.HalfClose().ok());
}

}  // namespace
}  // namespace aerie
