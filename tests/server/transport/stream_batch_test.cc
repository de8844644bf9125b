// Batches on a DraftStream: several requests in one message, each answered as if it had come alone.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/error_detail.h"
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

using ::testing::HasSubstr;

v1::DraftStreamRequest Asking(const v1::DraftRequest& draft) {
  v1::DraftStreamRequest request;
  *request.mutable_draft() = draft;
  return request;
}

std::vector<TestSequence> OpenMany(TestStream* stream, uint64_t count) {
  std::vector<TestSequence> sequences;
  for (uint64_t id = 0; id < count; ++id) sequences.emplace_back(id);
  for (TestSequence& sequence : sequences) stream->Open(&sequence);
  return sequences;
}

std::map<uint64_t, v1::DraftStreamResponse> ReadMany(TestStream* stream, size_t count) {
  std::map<uint64_t, v1::DraftStreamResponse> out;
  for (size_t i = 0; i < count; ++i) {
    v1::DraftStreamResponse response = stream->Read();
    const uint64_t id = response.id();
    EXPECT_TRUE(out.emplace(id, std::move(response)).second) << "answered twice: " << id;
  }
  return out;
}

// Several calls of a session in one batch are served in the order that they have there.
TEST(DraftStreamBatchTest, AnswersEachRequestUnderItsOwnId) {
  InProcessServer server;
  TestStream stream(server.stub());
  std::vector<TestSequence> sequences = OpenMany(&stream, 5);
  std::vector<v1::DraftStreamRequest> requests;
  std::vector<DraftTree> expected;
  for (int round = 0; round < 2; ++round) {
    for (TestSequence& sequence : sequences) {
      requests.push_back(Asking(sequence.NextRequest(3, 4)));
      sequence.Commit(3);
      expected.push_back(sequence.Expected(4));
    }
  }
  const std::vector<uint64_t> ids = stream.SendBatch(requests);
  const auto answers = ReadMany(&stream, ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    ASSERT_TRUE(answers.contains(ids[i])) << i;
    ASSERT_TRUE(answers.at(ids[i]).has_draft()) << answers.at(ids[i]).ShortDebugString();
    EXPECT_EQ(rpc::DecodeDraftTree(answers.at(ids[i]).draft().tree()).value(), expected[i]) << i;
  }
  EXPECT_TRUE(stream.HalfClose().ok());
}

TEST(DraftStreamBatchTest, OpensDraftsAndClosesInOneMessage) {
  InProcessServer server;
  TestStream stream(server.stub());
  std::vector<TestSequence> sequences = OpenMany(&stream, 1);
  TestSequence late(7);
  std::vector<v1::DraftStreamRequest> requests(3);
  *requests[0].mutable_open_session() = late.OpenRequest();
  *requests[1].mutable_draft() = sequences[0].NextRequest(2, 3);
  requests[2].mutable_close_session()->set_session_id(sequences[0].session_id);
  const std::vector<uint64_t> ids = stream.SendBatch(requests);
  const auto answers = ReadMany(&stream, ids.size());
  EXPECT_TRUE(answers.at(ids[0]).has_open_session());
  EXPECT_TRUE(answers.at(ids[1]).has_draft());
  EXPECT_TRUE(answers.at(ids[2]).has_close_session());
}

TEST(DraftStreamBatchTest, AnErrorOfOneRequestLeavesTheOthersOfItsBatch) {
  InProcessServer server;
  TestStream stream(server.stub());
  std::vector<TestSequence> sequences = OpenMany(&stream, 3);
  std::vector<v1::DraftStreamRequest> requests;
  for (TestSequence& sequence : sequences) requests.push_back(Asking(sequence.NextRequest(2, 2)));
  requests[1].mutable_draft()->mutable_hidden_states()->mutable_data()->pop_back();
  requests.emplace_back();  // asks for nothing
  const std::vector<uint64_t> ids = stream.SendBatch(requests);
  const auto answers = ReadMany(&stream, ids.size());
  EXPECT_TRUE(answers.at(ids[0]).has_draft());
  EXPECT_THAT(rpc::FromErrorDetail(answers.at(ids[1]).error()),
              Refuses(absl::StatusCode::kInvalidArgument, kReasonByteCount));
  EXPECT_TRUE(answers.at(ids[2]).has_draft());
  EXPECT_THAT(rpc::FromErrorDetail(answers.at(ids[3]).error()),
              Refuses(absl::StatusCode::kInvalidArgument, kReasonRequestInvalid));
  stream.ExpectRightDraft(&sequences[1], 2, 3);
}

TEST(DraftStreamBatchTest, OneThatIsEmptyTooLargeOrWithinAnotherIsRefusedWhole) {
  InProcessServer server({.limits = {.max_stream_in_flight = 4}});
  TestStream stream(server.stub());
  std::vector<TestSequence> sequences = OpenMany(&stream, 1);
  const v1::DraftStreamRequest good = Asking(sequences[0].NextRequest(2, 2));

  stream.SendBatch({});
  v1::DraftStreamResponse response = stream.Read();
  EXPECT_THAT(response.error().message(), HasSubstr("a batch of 0 requests; expected 1 to 4"));

  stream.SendBatch(std::vector<v1::DraftStreamRequest>(5, good));
  response = stream.Read();
  EXPECT_THAT(response.error().message(), HasSubstr("a batch of 5 requests; expected 1 to 4"));

  v1::DraftStreamRequest nested;
  *nested.mutable_batch()->add_requests() = good;
  const std::vector<uint64_t> ids = stream.SendBatch({nested});
  response = stream.Read();
  EXPECT_EQ(response.id(), ids[0]);
  EXPECT_THAT(response.error().message(), HasSubstr("not within another batch"));

  // None of the requests was looked at: the session has no rows yet.
  stream.ExpectRightDraft(&sequences[0], 2, 2);
  EXPECT_TRUE(stream.HalfClose().ok());
}

TEST(DraftStreamBatchTest, TheServerSaysHowManyRequestsABatchMayBring) {
  InProcessServer server({.limits = {.max_stream_in_flight = 4}});
  grpc::ClientContext context;
  v1::GetServerInfoResponse info;
  ASSERT_TRUE(server.stub().GetServerInfo(&context, {}, &info).ok());
  EXPECT_EQ(info.limits().max_batch_requests(), 4u);
}

}  // namespace
}  // namespace aerie
