#include "server/request_log/record_file.h"

#include <sys/stat.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/request_log/temporary_folder.h"

namespace aerie {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Time kNow = absl::UnixEpoch();

std::unique_ptr<RecordFile> Open(const std::string& path, int64_t max_bytes = 1 << 20,
                                 int32_t max_files = 3) {
  auto file = RecordFile::Open(path, max_bytes, max_files);
  EXPECT_TRUE(file.ok()) << file.status();
  return *std::move(file);
}

int ModeOf(const std::string& path) {
  struct stat facts {};
  EXPECT_EQ(stat(path.c_str(), &facts), 0) << path;
  return static_cast<int>(facts.st_mode & 0777);
}

TEST(RecordFileTest, HasALineOnceItsWriteReturned) {
  const TemporaryFolder folder;
  const auto file = Open(folder.File("log"));
  EXPECT_TRUE(file->Write("one", kNow).ok());
  EXPECT_THAT(ReadLines(folder.File("log")), ElementsAre("one"));
  EXPECT_TRUE(file->Write("two", kNow).ok());
  EXPECT_THAT(ReadLines(folder.File("log")), ElementsAre("one", "two"));
}

TEST(RecordFileTest, AddsToTheFileOfAnEarlierRun) {
  const TemporaryFolder folder;
  EXPECT_TRUE(Open(folder.File("log"))->Write("before", kNow).ok());
  EXPECT_TRUE(Open(folder.File("log"))->Write("after", kNow).ok());
  EXPECT_THAT(ReadLines(folder.File("log")), ElementsAre("before", "after"));
}

TEST(RecordFileTest, KeepsSoManyFilesOfSuchASizeAndNoMore) {
  const TemporaryFolder folder;
  const auto file = Open(folder.File("log.jsonl"), /*max_bytes=*/10, /*max_files=*/3);
  for (const char* line : {"aaaa", "bbbb", "cccc", "dddd", "eeee", "ffff", "gggg"}) {
    ASSERT_TRUE(file->Write(line, kNow).ok());
  }
  EXPECT_THAT(ReadLines(folder.File("log.jsonl")), ElementsAre("gggg"));
  EXPECT_THAT(ReadLines(folder.File("log.1.jsonl")), ElementsAre("eeee", "ffff"));
  EXPECT_THAT(ReadLines(folder.File("log.2.jsonl")), ElementsAre("cccc", "dddd"));
  EXPECT_FALSE(std::filesystem::exists(folder.File("log.3.jsonl")));
}

TEST(RecordFileTest, StartsTheOneFileAnewWhenOneIsKept) {
  const TemporaryFolder folder;
  const auto file = Open(folder.File("log"), /*max_bytes=*/10, /*max_files=*/1);
  for (const char* line : {"aaaa", "bbbb", "cccc"}) ASSERT_TRUE(file->Write(line, kNow).ok());
  EXPECT_THAT(ReadLines(folder.File("log")), ElementsAre("cccc"));
  EXPECT_FALSE(std::filesystem::exists(folder.File("log.1")));
}

TEST(RecordFileTest, IsReadableByItsOwnerAloneAfterARotationToo) {
  const TemporaryFolder folder;
  const auto file = Open(folder.File("log"), /*max_bytes=*/10);
  for (const char* line : {"aaaa", "bbbb", "cccc"}) ASSERT_TRUE(file->Write(line, kNow).ok());
  EXPECT_EQ(ModeOf(folder.File("log")), 0600);
  EXPECT_EQ(ModeOf(folder.File("log.1")), 0600);
}

TEST(RecordFileTest, MakesNoFolder) {
  const TemporaryFolder folder;
  const auto file = RecordFile::Open(folder.File("not/there/log"), 1 << 20, 3);
  EXPECT_EQ(file.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("No such file or directory"));
  EXPECT_FALSE(std::filesystem::exists(folder.File("not")));
}

TEST(RecordFileTest, SaysThatAFullDiskTookNothingAndTriesAgainASecondLater) {
  const auto file = Open("/dev/full");
  const absl::Status first = file->Write("lost", kNow);
  EXPECT_EQ(first.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(first.message()), HasSubstr("No space left on device"));
  // Not tried: the answer is the last one's.
  EXPECT_EQ(file->Write("lost", kNow + absl::Milliseconds(999)), first);
  EXPECT_EQ(file->Write("lost", kNow + absl::Seconds(1)).code(), absl::StatusCode::kUnavailable);
}

TEST(RecordFileTest, GoesOnOnceTheFileCanBeWrittenAgain) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("/dev/full", folder.File("log"));
  const auto file = Open(folder.File("log"));
  EXPECT_FALSE(file->Write("lost", kNow).ok());
  std::filesystem::remove(folder.File("log"));
  EXPECT_TRUE(file->Write("kept", kNow + absl::Seconds(1)).ok());
  EXPECT_TRUE(file->Write("kept too", kNow + absl::Seconds(1)).ok());
  // An empty line ends what may be left of the lost one.
  EXPECT_THAT(ReadLines(folder.File("log")), ElementsAre("", "kept", "kept too"));
}

TEST(RecordFileTest, OutlivesTheLossOfItsFolder) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.File("logs"));
  const auto file = Open(folder.File("logs/log"), /*max_bytes=*/10);
  ASSERT_TRUE(file->Write("aaaaaaaa", kNow).ok());
  std::filesystem::remove_all(folder.File("logs"));
  EXPECT_FALSE(file->Write("bbbbbbbb", kNow).ok()) << "it cannot be rotated";
  EXPECT_FALSE(file->Write("c", kNow + absl::Seconds(2)).ok());
  std::filesystem::create_directory(folder.File("logs"));
  EXPECT_TRUE(file->Write("d", kNow + absl::Seconds(4)).ok());
}

}  // namespace
}  // namespace aerie
