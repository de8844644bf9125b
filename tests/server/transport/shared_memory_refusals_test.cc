// Segments, and places in them, that a server must not take: each refusal by its reason, and the
// session as it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/error_detail.h"
#include "common/shared_rows_layout.h"
#include "server/transport/shared_memory_book.h"
#include "tests/server/transport/in_process_server.h"
#include "tests/server/transport/shared_memory_calls.h"
#include "tests/server/transport/test_segment.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

struct RefusedSegment {
  std::string name;
  TestSegmentOptions segment;
  std::function<void(v1::RegisterSharedMemoryRequest&)> change;
  std::string words;
};

class SharedMemoryRegistrationTest : public testing::TestWithParam<RefusedSegment> {};

TEST_P(SharedMemoryRegistrationTest, ASegmentThatIsNotAsTheContractSaysIsRefused) {
  InProcessServer server(Allowed());
  TestSegment segment(GetParam().segment);
  v1::RegisterSharedMemoryRequest request = segment.Registration();
  if (GetParam().change) GetParam().change(request);
  ExpectRefused(Register(server.stub(), request).status(), absl::StatusCode::kInvalidArgument,
                kReasonSharedMemoryInvalid, GetParam().words);
  EXPECT_EQ(server.shared_memory().segments(), 0);
}

auto Named(std::string name) {
  return [name](v1::RegisterSharedMemoryRequest& request) { request.set_name(name); };
}

INSTANTIATE_TEST_SUITE_P(
    Cases, SharedMemoryRegistrationTest,
    testing::ValuesIn(std::vector<RefusedSegment>{
        {"ANameWithoutThePrefix", {}, Named("/passwd"), "the segment's name is \"/passwd\""},
        {"ANameThatLeavesTheFolder", {}, Named("/aerie-/../x"), "the segment's name is"},
        {"ANameThatIsThePrefix", {}, Named("/aerie-"), "the segment's name is"},
        {"ALongName", {}, Named("/aerie-" + std::string(65, 'a')), "the segment's name is"},
        {"ANameWithAZero", {}, Named(std::string("/aerie-a\0b", 10)), "the segment's name is"},
        {"ASegmentThatIsNotThere", {}, Named("/aerie-nobody"), "No such file"},
        {"AnotherKey",
         {},
         [](v1::RegisterSharedMemoryRequest& request) { (*request.mutable_key())[31] ^= 1; },
         "the key of the call"},
        {"AShortKey",
         {},
         [](v1::RegisterSharedMemoryRequest& request) { request.mutable_key()->pop_back(); },
         "of 31 bytes"},
        {"ASegmentThatTheGroupMayWrite", {.mode = 0660}, {}, "has the permissions 0660"},
        {"ASegmentThatAllMayRead", {.mode = 0644}, {}, "has the permissions 0644"},
        {"ASegmentWithoutRoomForARow", {.size = 128}, {}, "has 128 bytes; expected at least 129"},
        {"ASegmentThatNobodyLocks", {.locked = false}, {}, "nobody holds a lock"},
    }),
    [](const auto& test) { return test.param.name; });

TEST(SharedMemoryRefusalsTest, APipeInASegmentsPlaceBlocksNobody) {
  InProcessServer server(Allowed());
  const std::string name = absl::StrCat("/aerie-pipe-", getpid());
  const std::string path = "/dev/shm" + name;
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  v1::RegisterSharedMemoryRequest request;
  request.set_name(name);
  request.set_key(std::string(kSegmentKeyBytes, 'k'));
  const absl::Status status = Register(server.stub(), request).status();
  unlink(path.c_str());
  ExpectRefused(status, absl::StatusCode::kInvalidArgument, kReasonSharedMemoryInvalid,
                "is no shared memory segment");
}

struct BadSlot {
  std::string name;
  std::function<void(v1::SharedRows&)> change;
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;
  std::string reason = kReasonSharedMemoryBounds;
  std::string words;
};

class SharedMemorySlotTest : public testing::TestWithParam<BadSlot> {};

TEST_P(SharedMemorySlotTest, ASlotThatIsNotTheCallsIsRefusedAndTheSessionStands) {
  InProcessOptions options = Allowed();
  options.limits.max_message_bytes = 4096;
  InProcessServer server(options);
  TestSegment segment;
  const std::string id = Registered(server.stub(), segment);
  TestSequence sequence(6);
  OpenUnary(server.stub(), &sequence);
  v1::DraftRequest call = Moved(sequence.NextRequest(3, 2), segment, id);
  GetParam().change(*call.mutable_hidden_states()->mutable_shared());
  v1::DraftResponse response;
  ExpectRefused(Draft(server.stub(), call, &response), GetParam().code, GetParam().reason,
                GetParam().words);
  ExpectRightDraft(server.stub(), &sequence, 3, 2);
}

constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();

INSTANTIATE_TEST_SUITE_P(
    Cases, SharedMemorySlotTest,
    testing::ValuesIn(std::vector<BadSlot>{
        {.name = "OffsetInTheHeader",
         .change = [](v1::SharedRows& rows) { rows.set_offset(0); },
         .words = "offset 0; expected a multiple of 64"},
        {.name = "OffsetBetweenSlots",
         .change = [](v1::SharedRows& rows) { rows.set_offset(72); },
         .words = "offset 72; expected a multiple"},
        {.name = "OffsetAtTheEnd",
         .change = [](v1::SharedRows& rows) { rows.set_offset(1 << 16); },
         .words = "expected an end within the segment's 65536"},
        {.name = "OffsetThatOverflows",
         .change = [](v1::SharedRows& rows) { rows.set_offset(kHuge - 63); },
         .words = "expected an end within"},
        {.name = "LengthThatOverflows",
         .change = [](v1::SharedRows& rows) { rows.set_length(kHuge); },
         .words = "expected an end within"},
        {.name = "LengthPastTheEnd",
         .change = [](v1::SharedRows& rows) { rows.set_length((1 << 16) - 127); },
         .words = "expected an end within"},
        {.name = "LengthAboveAMessage",
         .change = [](v1::SharedRows& rows) { rows.set_length(4097); },
         .code = absl::StatusCode::kResourceExhausted,
         .reason = kReasonMessageTooLarge,
         .words = "expected at most 4096"},
        {.name = "LengthOfOtherRows",
         .change = [](v1::SharedRows& rows) { rows.set_length(rows.length() - 1); },
         .reason = kReasonByteCount,
         .words = "send exactly one row"},
        {.name = "NoStamp",
         .change = [](v1::SharedRows& rows) { rows.set_stamp(0); },
         .reason = kReasonSharedMemoryInvalid,
         .words = "the stamp 0"},
        {.name = "AnotherStamp",
         .change = [](v1::SharedRows& rows) { rows.set_stamp(8); },
         .code = absl::StatusCode::kAborted,
         .reason = kReasonSharedMemoryChanged,
         .words = "has the stamp 7"},
        {.name = "ASegmentThatIsNotRegistered",
         .change = [](v1::SharedRows& rows) { rows.set_segment_id("nobody's"); },
         .code = absl::StatusCode::kFailedPrecondition,
         .reason = kReasonSharedMemoryUnknown,
         .words = "register the segment anew"},
    }),
    [](const auto& test) { return test.param.name; });

TEST(SharedMemoryRefusalsTest, RowsThereAndInTheMessageAreRefused) {
  InProcessServer server(Allowed());
  TestSegment segment;
  TestSequence sequence(7);
  OpenUnary(server.stub(), &sequence);
  v1::DraftRequest call =
      Moved(sequence.NextRequest(1, 1), segment, Registered(server.stub(), segment));
  call.mutable_hidden_states()->set_data("x");
  v1::DraftResponse response;
  ExpectRefused(Draft(server.stub(), call, &response), absl::StatusCode::kInvalidArgument,
                kReasonRequestInvalid, "expected one of them");
}

TEST(SharedMemoryRefusalsTest, CopiesThatWaitHoldAtMostTwiceTheSegmentsBytes) {
  SharedMemoryBook book({.enabled = true}, 1 << 20);
  TestSegment segment({.size = 4096});
  const auto registered = book.Register("", "", segment.Registration());
  ASSERT_THAT(registered, IsOk());
  v1::SharedRows rows = segment.Put(64, std::string(1000, 'r'), 1);
  rows.set_segment_id(registered->segment_id());
  std::vector<SharedBytes> waiting;
  for (int i = 0; i < 8; ++i) {
    const auto bytes = book.Read("", rows);
    ASSERT_THAT(bytes, IsOk());
    waiting.push_back(*bytes);
  }
  const absl::Status refused = book.Read("", rows).status();
  ExpectRefused(refused, absl::StatusCode::kResourceExhausted, kReasonSharedMemoryQuota,
                "would hold 9000 bytes of a segment of 4096");
  EXPECT_TRUE(DetailOf(refused).retry_after.has_value());
  waiting.pop_back();
  EXPECT_THAT(book.Read("", rows), IsOk());
  EXPECT_THAT(book.Unregister("", rows.segment_id()), IsOk());
  EXPECT_EQ(waiting.front().bytes, std::string(1000, 'r'));  // outlives its segment
}

TEST(SharedMemoryRefusalsTest, ANameThatNoClientMayHaveRegistersNothing) {
  InProcessServer server(Allowed());
  TestSegment segment;
  v1::RegisterSharedMemoryRequest request = segment.Registration();
  request.set_client(std::string(65, 'c'));
  const absl::Status status = Register(server.stub(), request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(server.shared_memory().segments(), 0);
}

}  // namespace
}  // namespace aerie
