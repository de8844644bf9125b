// Rows that a worker leaves in shared memory: what they draft, how long a segment is known, whose
// it is. What is refused: shared_memory_refusals_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/error_detail.h"
#include "common/rpc/tree_codec.h"
#include "server/transport/shared_memory_book.h"
#include "tests/server/transport/in_process_server.h"
#include "tests/server/transport/shared_memory_calls.h"
#include "tests/server/transport/test_segment.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using ::testing::Contains;
using ::testing::Not;

TEST(SharedMemoryTest, RowsInItDraftWhatTheyDraftInTheMessage) {
  InProcessServer server(Allowed());
  TestSegment segment;
  const std::string id = Registered(server.stub(), segment);
  segment.Unlink();  // a name is of no use any more
  TestSequence sequence(3);
  OpenUnary(server.stub(), &sequence);
  for (uint64_t stamp = 1; stamp <= 3; ++stamp) {
    v1::DraftResponse response;
    const auto call = Moved(sequence.NextRequest(5, 4), segment, id, 64 * stamp, stamp);
    ASSERT_THAT(Draft(server.stub(), call, &response), IsOk());
    sequence.Commit(5);
    EXPECT_EQ(rpc::DecodeDraftTree(response.tree()).value(), sequence.Expected(4));
  }
  ExpectRightDraft(server.stub(), &sequence, 2, 4);  // and in the message, in between
}

TEST(SharedMemoryTest, CallsOnAStreamMayLeaveTheirRowsThere) {
  InProcessServer server(Allowed());
  TestSegment segment;
  const std::string id = Registered(server.stub(), segment);
  TestSequence sequence(4);
  OpenUnary(server.stub(), &sequence);
  grpc::ClientContext context;
  const auto stream = server.stub().DraftStream(&context);
  v1::DraftStreamRequest request;
  request.set_id(1);
  *request.mutable_draft() = Moved(sequence.NextRequest(6, 3), segment, id);
  ASSERT_TRUE(stream->Write(request));
  v1::DraftStreamResponse response;
  ASSERT_TRUE(stream->Read(&response));
  sequence.Commit(6);
  ASSERT_TRUE(response.has_draft()) << response.error().message();
  EXPECT_EQ(rpc::DecodeDraftTree(response.draft().tree()).value(), sequence.Expected(3));
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST(SharedMemoryTest, Fp8RowsAreUnpackedFromIt) {
  InProcessServer server(Allowed());
  TestSegment segment;
  TestSequence sequence(5);
  v1::OpenSessionRequest open = sequence.OpenRequest();
  open.mutable_manifest()->set_dtype(v1::DATA_TYPE_FLOAT8_E4M3FN);
  grpc::ClientContext context;
  v1::OpenSessionResponse opened;
  ASSERT_TRUE(server.stub().OpenSession(&context, open, &opened).ok());
  v1::DraftRequest call;
  call.set_session_id(opened.session_id());
  call.add_token_ids(1);
  call.set_k(2);
  call.mutable_hidden_states()->set_dtype(v1::DATA_TYPE_FLOAT8_E4M3FN);
  // A scale of 1.0 and twelve times 0.5.
  call.mutable_hidden_states()->set_data(std::string("\0\0\x80\x3f", 4) + std::string(12, '\x30'));
  v1::DraftResponse inline_response, shared_response;
  ASSERT_THAT(Draft(server.stub(), call, &inline_response), IsOk());
  const auto moved = Moved(call, segment, Registered(server.stub(), segment));
  ASSERT_THAT(Draft(server.stub(), moved, &shared_response), IsOk());
  EXPECT_EQ(rpc::DecodeDraftTree(shared_response.tree()).value(),
            rpc::DecodeDraftTree(inline_response.tree()).value());
}

std::vector<int> TransportsOf(InProcessServer& server) {
  grpc::ClientContext context;
  v1::GetServerInfoResponse info;
  EXPECT_TRUE(server.stub().GetServerInfo(&context, {}, &info).ok());
  return {info.transports().begin(), info.transports().end()};
}

TEST(SharedMemoryTest, IsOffUnlessTheServerAllowsIt) {
  InProcessServer off, on(Allowed());
  EXPECT_THAT(TransportsOf(off), Not(Contains(v1::TRANSPORT_SHARED_MEMORY)));
  EXPECT_THAT(TransportsOf(on), Contains(v1::TRANSPORT_SHARED_MEMORY));
  TestSegment segment;
  ExpectRefused(Register(off.stub(), segment.Registration()).status(),
                absl::StatusCode::kFailedPrecondition, kReasonSharedMemoryOff, "--shared-memory");
  TestSequence sequence(1);
  OpenUnary(off.stub(), &sequence);
  v1::DraftResponse response;
  ExpectRefused(Draft(off.stub(), Moved(sequence.NextRequest(2, 1), segment, "x"), &response),
                absl::StatusCode::kFailedPrecondition, kReasonSharedMemoryOff, "--shared-memory");
  ExpectRightDraft(off.stub(), &sequence, 2, 1);
}

TEST(SharedMemoryTest, ATruncatedSegmentIsRefusedAndTheServerLives) {
  InProcessServer server(Allowed());
  TestSegment segment;
  const std::string id = Registered(server.stub(), segment);
  TestSequence sequence(8);
  OpenUnary(server.stub(), &sequence);
  const v1::DraftRequest call = Moved(sequence.NextRequest(3, 2), segment, id, 8192);
  for (const int64_t size : {0, 8192, 8192 + 64 + 10}) {
    segment.Truncate(size);
    v1::DraftResponse response;
    ExpectRefused(Draft(server.stub(), call, &response), absl::StatusCode::kInvalidArgument,
                  kReasonSharedMemoryBounds, "do not truncate it");
  }
  ExpectRightDraft(server.stub(), &sequence, 3, 2);
}

TEST(SharedMemoryTest, ASegmentDoesNotGrowWithoutAnotherRegistration) {
  InProcessServer server(Allowed());
  TestSegment segment({.size = 4096});
  const std::string id = Registered(server.stub(), segment);
  segment.Truncate(1 << 16);
  TestSequence sequence(9);
  OpenUnary(server.stub(), &sequence);
  v1::DraftResponse response;
  ExpectRefused(
      Draft(server.stub(), Moved(sequence.NextRequest(1, 1), segment, id, 4096), &response),
      absl::StatusCode::kInvalidArgument, kReasonSharedMemoryBounds, "the segment's 4096 bytes");
}

TEST(SharedMemoryTest, ASegmentIsForgottenWhenItsWorkerEnds) {
  InProcessServer server(Allowed());
  TestSegment dead, alive;
  const std::string id = Registered(server.stub(), dead);
  Registered(server.stub(), alive);
  server.shared_memory().ForgetDead();
  EXPECT_EQ(server.shared_memory().segments(), 2);
  dead.DropLock();
  server.shared_memory().ForgetDead();
  EXPECT_EQ(server.shared_memory().segments(), 1);
  TestSequence sequence(10);
  OpenUnary(server.stub(), &sequence);
  v1::DraftResponse response;
  ExpectRefused(Draft(server.stub(), Moved(sequence.NextRequest(1, 1), dead, id), &response),
                absl::StatusCode::kFailedPrecondition, kReasonSharedMemoryUnknown,
                "register the segment anew");
}

TEST(SharedMemoryTest, AClientHasAQuotaOfSegmentsWhichTheDeadDoNotTake) {
  InProcessOptions options = Allowed();
  options.shared_memory.max_segments_per_client = 2;
  InProcessServer server(options);
  TestSegment first, second, third;
  Registered(server.stub(), first);
  Registered(server.stub(), second);
  const absl::Status refused = Register(server.stub(), third.Registration()).status();
  ExpectRefused(refused, absl::StatusCode::kResourceExhausted, kReasonSharedMemoryQuota,
                "has 2 shared memory segments");
  EXPECT_TRUE(DetailOf(refused).retry_after.has_value());
  v1::RegisterSharedMemoryRequest of_another = third.Registration();
  of_another.set_client("another");
  EXPECT_THAT(Register(server.stub(), of_another), IsOk());
  first.DropLock();
  EXPECT_THAT(Register(server.stub(), third.Registration()), IsOk());
}

TEST(SharedMemoryTest, AClientHasAQuotaOfBytes) {
  InProcessOptions options = Allowed();
  options.shared_memory.max_bytes_per_client = 1 << 20;
  InProcessServer server(options);
  TestSegment half({.size = 1 << 19}), more({.size = (1 << 19) + 1}), rest({.size = 1 << 19});
  Registered(server.stub(), half);
  ExpectRefused(Register(server.stub(), more.Registration()).status(),
                absl::StatusCode::kResourceExhausted, kReasonSharedMemoryQuota,
                "would have 524288 + 524289 bytes");
  EXPECT_THAT(Register(server.stub(), rest.Registration()), IsOk());
}

TEST(SharedMemoryTest, UnregisteringMakesRoomAndHurtsNobody) {
  InProcessOptions options = Allowed();
  options.shared_memory.max_segments_per_client = 1;
  InProcessServer server(options);
  TestSegment first, second;
  v1::UnregisterSharedMemoryRequest request;
  request.set_segment_id(Registered(server.stub(), first));
  for (int i = 0; i < 2; ++i) {  // the second time it is not known
    grpc::ClientContext context;
    v1::UnregisterSharedMemoryResponse response;
    EXPECT_TRUE(server.stub().UnregisterSharedMemory(&context, request, &response).ok());
  }
  EXPECT_EQ(server.shared_memory().segments(), 0);
  EXPECT_THAT(Register(server.stub(), second.Registration()), IsOk());
}

TEST(SharedMemoryTest, AnotherCallersSegmentIsNobodysToRead) {
  SharedMemoryBook book({.enabled = true}, 1 << 20);
  TestSegment segment;
  const auto mine = book.Register("me", "me", segment.Registration());
  ASSERT_THAT(mine, IsOk());
  v1::SharedRows rows = segment.Put(64, "rows", 1);
  rows.set_segment_id(mine->segment_id());
  EXPECT_EQ(DetailOf(book.Read("you", rows).status()).reason, kReasonSharedMemoryUnknown);
  EXPECT_EQ(DetailOf(book.Unregister("you", rows.segment_id())).reason, kReasonPermissionDenied);
  ASSERT_THAT(book.Read("me", rows), IsOk());
  EXPECT_EQ(book.Read("me", rows)->bytes, "rows");
}

TEST(SharedMemoryTest, OnlyUnixSocketsAndLoopbackAreOfThisHost) {
  for (const char* local : {"unix:", "unix:/run/aerie.sock", "unix-abstract:x", "ipv4:127.0.0.1:7",
                            "ipv4:127.9.9.9:7", "ipv6:%5B::1%5D:7", "ipv6:[::1]:7"}) {
    EXPECT_TRUE(IsLocalPeer(local)) << local;
  }
  for (const char* remote : {"", "ipv4:10.0.0.1:127", "ipv4:12.7.0.1:7", "ipv6:%5B::2%5D:7",
                             "ipv6:%5B::11%5D:7", "ipv6:%5Bfe80::1%5D:7", "vsock:1"}) {
    EXPECT_FALSE(IsLocalPeer(remote)) << remote;
  }
}

}  // namespace
}  // namespace aerie
