#include "client/shared_row_segment.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <set>
#include <string>

#include "common/shared_rows_layout.h"

namespace aerie {
namespace {

constexpr int64_t kSize = 4096;

std::unique_ptr<SharedRowSegment> Make(int64_t bytes = kSize) {
  auto segment = SharedRowSegment::Create(bytes);
  EXPECT_TRUE(segment.ok()) << segment.status();
  return *std::move(segment);
}

// A segment as a server sees it.
class Reader {
 public:
  explicit Reader(const std::string& name) : fd_(shm_open(name.c_str(), O_RDONLY, 0)) {}
  ~Reader() {
    if (fd_ >= 0) close(fd_);
  }
  bool found() const { return fd_ >= 0; }
  std::string At(int64_t offset, size_t count) const {
    std::string bytes(count, '\0');
    EXPECT_EQ(pread(fd_, bytes.data(), count, offset), static_cast<ssize_t>(count));
    return bytes;
  }
  uint64_t StampAt(int64_t offset) const {
    uint64_t stamp = 0;
    EXPECT_EQ(pread(fd_, &stamp, sizeof(stamp), offset), static_cast<ssize_t>(sizeof(stamp)));
    return stamp;
  }
  bool IsLocked() const {
    if (flock(fd_, LOCK_SH | LOCK_NB) != 0) return true;
    flock(fd_, LOCK_UN);
    return false;
  }

 private:
  const int fd_;
};

TEST(SharedRowSegmentTest, LiesAsTheContractSays) {
  const auto segment = Make();
  const Reader reader(segment->name());
  ASSERT_TRUE(reader.found());
  EXPECT_TRUE(reader.IsLocked());
  EXPECT_EQ(segment->key().size(), kSegmentKeyBytes);
  EXPECT_EQ(reader.At(0, 40), std::string(kSegmentMagic) + segment->key());
  EXPECT_EQ(reader.At(40, 24), std::string(24, '\0'));
  const auto slot = segment->Put("some rows");
  ASSERT_TRUE(slot.has_value());
  EXPECT_EQ(slot->offset, kSegmentHeaderBytes);
  EXPECT_EQ(slot->length, 9);
  EXPECT_NE(slot->stamp, 0u);
  EXPECT_EQ(reader.StampAt(slot->offset), slot->stamp);
  EXPECT_EQ(reader.At(slot->offset + kSlotHeaderBytes, 9), "some rows");
}

TEST(SharedRowSegmentTest, GivesASlotAgainWhenItIsFreeAndNeverWithAnOldStamp) {
  const auto segment = Make();
  const auto first = segment->Put(std::string(100, 'a'));
  const auto second = segment->Put(std::string(100, 'b'));
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_EQ(second->offset, first->offset + 192);
  segment->Free(*first);
  const auto third = segment->Put(std::string(129, 'c'));  // too large for the gap
  const auto fourth = segment->Put(std::string(128, 'd'));
  ASSERT_TRUE(third.has_value() && fourth.has_value());
  EXPECT_EQ(third->offset, second->offset + 192);
  EXPECT_EQ(fourth->offset, first->offset);
  EXPECT_EQ(
      (std::set<uint64_t>{0, first->stamp, second->stamp, third->stamp, fourth->stamp}.size()), 5u);
}

TEST(SharedRowSegmentTest, ACallThatHasEndedLeavesNoStampThatALateReaderCouldTake) {
  const auto segment = Make();
  const Reader reader(segment->name());
  const auto slot = segment->Put("rows");
  ASSERT_TRUE(slot.has_value());
  segment->Free(*slot);
  EXPECT_EQ(reader.StampAt(slot->offset), 0u);
}

TEST(SharedRowSegmentTest, SaysThatRowsFindNoRoom) {
  const auto segment = Make();
  const int64_t room = kSize - kSegmentHeaderBytes - kSlotHeaderBytes;
  EXPECT_FALSE(segment->Put(std::string(room + 1, 'a')).has_value());
  const auto whole = segment->Put(std::string(room, 'b'));
  ASSERT_TRUE(whole.has_value());
  EXPECT_FALSE(segment->Put("c").has_value());
  segment->Free(*whole);
  EXPECT_TRUE(segment->Put("c").has_value());
}

TEST(SharedRowSegmentTest, IsRefusedWhereThereIsNoRoomForIt) {
  const auto segment = SharedRowSegment::Create(int64_t{1} << 50);
  ASSERT_FALSE(segment.ok());
  EXPECT_EQ(segment.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(segment.status().message()), testing::HasSubstr("larger /dev/shm"));
}

TEST(SharedRowSegmentTest, LeavesNothingOnceItsNameIsGone) {
  std::string name;
  {
    const auto segment = Make();
    name = segment->name();
    const Reader reader(name);
    segment->Unlink();
    EXPECT_FALSE(Reader(name).found());
    ASSERT_TRUE(segment->Put("rows").has_value());  // who has it open reads on
    EXPECT_EQ(reader.At(128, 4), "rows");
  }
  const auto another = Make();
  EXPECT_NE(another->name(), name);
}

TEST(SharedRowSegmentTest, WhatAKilledProcessLeftIsRemovedAndWhatOthersHoldIsNot) {
  const auto held = Make();
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto left = Make();
    const bool told = write(pipe_ends[1], left->name().data(), left->name().size()) > 0;
    if (told) pause();
    _exit(1);
  }
  char text[128];
  const ssize_t count = read(pipe_ends[0], text, sizeof(text));
  ASSERT_GT(count, 0);
  const std::string left(text, static_cast<size_t>(count));
  RemoveStaleSegments();
  EXPECT_TRUE(Reader(left).found());
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  RemoveStaleSegments();
  EXPECT_FALSE(Reader(left).found());
  EXPECT_TRUE(Reader(held->name()).found());
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

}  // namespace
}  // namespace aerie
