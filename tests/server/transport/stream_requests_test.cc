// What goes over a DraftStream: order, errors inside, limits. How streams end: stream_end_test.cc.
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/error_detail.h"
#include "common/rpc/codec.h"
#include "common/rpc/status_codec.h"
#include "common/rpc/tree_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/transport/draft_stream.h"
#include "tests/server/transport/in_process_server.h"
#include "tests/server/transport/test_stream.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using ::testing::ElementsAre;

TEST(DraftStreamTest, DraftsForManySessionsThatTakeTurns) {
  InProcessServer server;
  TestStream stream(server.stub());
  std::vector<TestSequence> sequences;
  for (uint64_t id = 0; id < 50; ++id) {
    sequences.emplace_back(id);
    stream.Open(&sequences.back());
  }
  // All are asked before any answer is read, twice each, so that they overtake each other.
  std::map<uint64_t, std::pair<size_t, DraftTree>> expected;  // by id: session, draft
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < sequences.size(); ++i) {
      const int rows = 1 + static_cast<int>(i % 3);
      const uint64_t id = stream.SendDraft(sequences[i].NextRequest(rows, 4));
      sequences[i].Commit(rows);
      expected[id] = {i, sequences[i].Expected(4)};
    }
  }
  std::map<size_t, uint64_t> last;  // by session: the newest id answered
  while (!expected.empty()) {
    const v1::DraftStreamResponse response = stream.Read();
    ASSERT_TRUE(response.has_draft()) << response.ShortDebugString();
    const auto found = expected.find(response.id());
    ASSERT_NE(found, expected.end()) << response.id();
    const auto& [session, tree] = found->second;
    EXPECT_EQ(rpc::DecodeDraftTree(response.draft().tree()).value(), tree) << session;
    EXPECT_LT(last[session], response.id()) << "replies of a session keep its order";
    last[session] = response.id();
    expected.erase(found);
  }
  EXPECT_TRUE(stream.HalfClose().ok());
}

TEST(DraftStreamTest, AnErrorOfOneRequestLeavesTheStreamAndTheOthers) {
  InProcessServer server;
  TestStream stream(server.stub());
  TestSequence victim(1);
  TestSequence bystander(2);
  stream.Open(&victim);
  stream.Open(&bystander);
  stream.ExpectRightDraft(&victim, 4, 2);
  stream.ExpectRightDraft(&bystander, 3, 2);

  v1::DraftRequest bad = victim.NextRequest(2, 2);
  bad.mutable_hidden_states()->mutable_data()->pop_back();
  const uint64_t id = stream.SendDraft(bad);
  v1::DraftStreamResponse response = stream.Read();
  EXPECT_EQ(response.id(), id);
  EXPECT_THAT(rpc::FromErrorDetail(response.error()),
              Refuses(absl::StatusCode::kInvalidArgument, kReasonByteCount));

  v1::DraftRequest ahead = victim.NextRequest(2, 2);
  ahead.set_base_length(9);
  stream.SendDraft(ahead);
  response = stream.Read();
  EXPECT_THAT(rpc::FromErrorDetail(response.error()),
              Refuses(absl::StatusCode::kFailedPrecondition, kReasonBaseLengthAhead));
  EXPECT_EQ(response.error().resend_from(), 4u);

  stream.ExpectRightDraft(&bystander, 1, 3);
  stream.ExpectRightDraft(&victim, 2, 3);
}

TEST(DraftStreamTest, ATimeLimitEndsItsOwnCallAndNoOther) {
  InProcessServer server;
  TestStream stream(server.stub());
  TestSequence hurried(1);
  TestSequence patient(2);
  stream.Open(&hurried);
  stream.Open(&patient);

  v1::DraftRequest late = hurried.NextRequest(2, 2);
  rpc::EncodeDuration(absl::Nanoseconds(1), late.mutable_time_limit());
  stream.SendDraft(late);
  EXPECT_THAT(rpc::FromErrorDetail(stream.Read().error()),
              StatusIs(absl::StatusCode::kDeadlineExceeded));

  stream.ExpectRightDraft(&patient, 1, 3);
  stream.ExpectRightDraft(&hurried, 2, 3);  // as it was before the call
}

TEST(DraftStreamTest, RefusesARequestThatHoldsNothing) {
  InProcessServer server;
  TestStream stream(server.stub());
  v1::DraftStreamRequest empty;
  empty.set_id(77);
  stream.Send(empty);
  const v1::DraftStreamResponse response = stream.Read();
  EXPECT_EQ(response.id(), 77u);
  EXPECT_THAT(rpc::FromErrorDetail(response.error()),
              Refuses(absl::StatusCode::kInvalidArgument, kReasonRequestInvalid));
  EXPECT_THAT(server.observer().rejected(), ElementsAre(RejectReason::kShape));
}

TEST(DraftStreamTest, AnOpenThatDoesNotFitIsAnErrorWithEveryField) {
  InProcessServer server;
  TestStream stream(server.stub());
  v1::DraftStreamRequest request;
  *request.mutable_open_session() = TestSequence(1).OpenRequest();
  request.mutable_open_session()->mutable_manifest()->set_vocab_size(7);
  request.mutable_open_session()->mutable_manifest()->set_num_layers(9);
  stream.Send(request);
  const v1::DraftStreamResponse response = stream.Read();
  EXPECT_EQ(response.error().code(), static_cast<int>(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(response.error().mismatches_size(), 2);
}

TEST(DraftStreamTest, AnOversizeRequestIsAnErrorAndNotTheEndOfTheStream) {
  InProcessOptions options;
  options.limits.max_message_bytes = 64 << 10;
  InProcessServer server(options);
  TestStream stream(server.stub());
  TestSequence sequence(1);
  stream.Open(&sequence);
  v1::DraftRequest big = sequence.NextRequest(1, 1);
  big.mutable_hidden_states()->mutable_data()->resize(70'000);
  stream.SendDraft(big);
  EXPECT_THAT(rpc::FromErrorDetail(stream.Read().error()),
              Refuses(absl::StatusCode::kResourceExhausted, kReasonMessageTooLarge));
  stream.ExpectRightDraft(&sequence, 4, 2);
}

TEST(DraftStreamTest, ARefusalDoesNotOvertakeAnOlderRequestOfItsSession) {
  Gate gate;
  InProcessOptions options;
  options.model.before_step = gate.Hook();
  InProcessServer server(options);
  TestStream stream(server.stub());
  TestSequence slow(1);
  TestSequence other(2);
  stream.Open(&slow);
  stream.Open(&other);
  gate.Close();
  const uint64_t first = stream.SendDraft(slow.NextRequest(2, 1));
  gate.WaitUntilReached();
  v1::DraftRequest bad = slow.NextRequest(1, 1);
  bad.clear_hidden_states();
  const uint64_t second = stream.SendDraft(bad);
  bad.set_session_id(other.session_id);
  const uint64_t third = stream.SendDraft(bad);
  // Of another session: it need not wait. Once it is here, the second has been refused as well.
  EXPECT_EQ(stream.Read().id(), third);
  gate.Open();
  EXPECT_EQ(stream.Read().id(), first);
  EXPECT_EQ(stream.Read().id(), second);
}

TEST(DraftStreamTest, ASlowReaderNeverMakesTheServerHoldMoreThanTheLimit) {
  InProcessOptions options;
  options.limits.max_stream_in_flight = 3;
  InProcessServer server(options);
  TestStream stream(server.stub());
  TestSequence sequence(1);
  stream.Open(&sequence);
  constexpr int kRequests = 200;
  // Sends without reading until flow control holds it up; the reader starts when all are under way
  // or blocked.
  std::thread sender([&] {
    for (int i = 0; i < kRequests; ++i) {
      stream.SendDraft(sequence.NextRequest(1, 2));
      sequence.Commit(1);
    }
  });
  for (int i = 0; i < kRequests; ++i) EXPECT_TRUE(stream.Read().has_draft());
  sender.join();
  EXPECT_TRUE(stream.HalfClose().ok());
  server.rpcs().WaitForHandled("DraftStream", 1);
  const RecordingRpcObserver::Counts counts = server.rpcs().Of("DraftStream");
  EXPECT_LE(counts.most_unanswered, 3);
  EXPECT_EQ(counts.received, kRequests + 1);
  EXPECT_EQ(counts.sent, kRequests + 1);
}

TEST(DraftStreamTest, StopsReadingOnceTheUnansweredBytesReachTheLimit) {
  Gate gate;
  InProcessOptions options;
  options.limits.max_message_bytes = 64 << 10;
  options.engine.max_rows_per_call = 4096;
  options.model.before_step = gate.Hook();
  InProcessServer server(options);
  TestStream stream(server.stub());
  TestSequence sequence(1);
  stream.Open(&sequence);
  gate.Close();
  constexpr int kRows = 1000;  // 48 KB each: one fits below the limit, two are above it
  constexpr int kRequests = 8;
  std::thread sender([&] {
    for (int i = 0; i < kRequests; ++i) {
      stream.SendDraft(sequence.NextRequest(kRows, 1));
      sequence.Commit(kRows);
    }
  });
  gate.WaitUntilReached();
  gate.Open();
  for (int i = 0; i < kRequests; ++i) EXPECT_TRUE(stream.Read().has_draft());
  sender.join();
  EXPECT_LE(server.rpcs().Of("DraftStream").most_unanswered, 3);  // two, and one just answered
}

TEST(DraftStreamTest, ASessionOpenedElsewhereMayBeDraftedForAndOutlivesTheStream) {
  InProcessServer server;
  TestSequence sequence(1);
  OpenUnary(server.stub(), &sequence);
  {
    TestStream stream(server.stub());
    stream.ExpectRightDraft(&sequence, 4, 2);
    EXPECT_TRUE(stream.HalfClose().ok());
  }
  ExpectRightDraft(server.stub(), &sequence, 1, 3);
}

TEST(DraftStreamTest, ClosesASessionWithItsAcceptance) {
  InProcessServer server;
  TestStream stream(server.stub());
  TestSequence sequence(1);
  stream.Open(&sequence);
  stream.ExpectRightDraft(&sequence, 4, 2);
  v1::DraftStreamRequest close;
  close.set_id(500);
  close.mutable_close_session()->set_session_id(sequence.session_id);
  close.mutable_close_session()->add_final_token_ids(
      static_cast<uint32_t>(sequence.Expected(1).tokens[0]));
  stream.Send(close);
  v1::DraftStreamResponse response = stream.Read();
  EXPECT_EQ(response.id(), 500u);
  EXPECT_EQ(response.close_session().acceptance().num_accepted_draft_tokens(), 1u);
  EXPECT_EQ(server.UsedPages(), 0);
  stream.Send(close);
  EXPECT_THAT(rpc::FromErrorDetail(stream.Read().error()),
              Refuses(absl::StatusCode::kNotFound, kReasonSessionUnknown));
}

}  // namespace
}  // namespace aerie
