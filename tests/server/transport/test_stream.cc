#include "tests/server/transport/test_stream.h"

#include "common/rpc/codec.h"
#include "common/rpc/tree_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace aerie {

TestStream::TestStream(v1::DraftService::Stub& stub,
                       std::optional<std::chrono::milliseconds> deadline) {
  if (deadline) context_.set_deadline(std::chrono::system_clock::now() + *deadline);
  stream_ = stub.DraftStream(&context_);
}

TestStream::~TestStream() {
  if (ended_) return;
  context_.TryCancel();
  v1::DraftStreamResponse response;
  while (stream_->Read(&response)) {
  }
  stream_->Finish();
}

void TestStream::Send(const v1::DraftStreamRequest& request) {
  EXPECT_TRUE(stream_->Write(request)) << request.id();
}

uint64_t TestStream::SendDraft(const v1::DraftRequest& request) {
  v1::DraftStreamRequest message;
  message.set_id(next_id_++);
  *message.mutable_draft() = request;
  Send(message);
  return message.id();
}

std::vector<uint64_t> TestStream::SendBatch(std::vector<v1::DraftStreamRequest> requests) {
  v1::DraftStreamRequest message;
  message.set_id(next_id_++);
  std::vector<uint64_t> ids;
  for (v1::DraftStreamRequest& request : requests) {
    request.set_id(next_id_++);
    ids.push_back(request.id());
    *message.mutable_batch()->add_requests() = std::move(request);
  }
  message.mutable_batch();
  Send(message);
  return ids;
}

v1::DraftStreamResponse TestStream::Read() {
  v1::DraftStreamResponse response;
  EXPECT_TRUE(stream_->Read(&response)) << "the stream has ended";
  return response;
}

void TestStream::Open(TestSequence* sequence) {
  v1::DraftStreamRequest message;
  message.set_id(next_id_++);
  *message.mutable_open_session() = sequence->OpenRequest();
  Send(message);
  const v1::DraftStreamResponse response = Read();
  EXPECT_EQ(response.id(), message.id());
  EXPECT_TRUE(response.has_open_session()) << response.ShortDebugString();
  sequence->session_id = response.open_session().session_id();
}

void TestStream::ExpectRightDraft(TestSequence* sequence, int rows, int k) {
  const uint64_t id = SendDraft(sequence->NextRequest(rows, k));
  const v1::DraftStreamResponse response = Read();
  EXPECT_EQ(response.id(), id);
  ASSERT_TRUE(response.has_draft()) << response.ShortDebugString();
  sequence->Commit(rows);
  EXPECT_EQ(rpc::DecodeDraftTree(response.draft().tree()).value(), sequence->Expected(k));
}

grpc::Status TestStream::HalfClose() {
  EXPECT_TRUE(stream_->WritesDone());
  return ReadEnd();
}

grpc::Status TestStream::ReadEnd() {
  v1::DraftStreamResponse response;
  while (stream_->Read(&response)) ADD_FAILURE() << response.ShortDebugString();
  ended_ = true;
  return stream_->Finish();
}

}  // namespace aerie
