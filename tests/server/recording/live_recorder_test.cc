// Sessions of a running engine, read back as a recording.
#include "server/recording/live_recorder.h"

#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/recording/recording.h"
#include "server/recording/recording_output.h"
#include "tests/server/checkpoint/tiny_head.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr int32_t kHidden = 4;

// Rows as two captures of a target, [rows, 2 x kHidden], F32; column 0 is the row's number.
std::string Rows(int64_t first, int64_t count) {
  std::string bytes;
  for (int64_t row = first; row < first + count; ++row) {
    for (int column = 0; column < 2 * kHidden; ++column) {
      const float value = static_cast<float>(row) + 0.0625f * static_cast<float>(column);
      bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
    }
  }
  return bytes;
}

class LiveRecorderTest : public testing::Test {
 protected:
  LiveRecorderTest() {
    manifest_.target_id = "model";
    manifest_.dtype = DType::kF32;
  }

  void Start(LiveRecorderOptions options = {}) {
    options.folder = path_;
    if (options.limit_bytes == 0) options.limit_bytes = 1 << 20;
    if (options.sessions == 0) options.sessions = 4;
    options.wiring = *Wiring::Create({Capture::Boundary(2), Capture::FinalNorm()}, 8);
    options.target = {.id = "", .num_layers = 8, .hidden_size = kHidden, .vocab_size = 100};
    auto recorder = LiveRecorder::Start(std::move(options));
    ASSERT_THAT(recorder, IsOk());
    recorder_ = *std::move(recorder);
  }

  std::unique_ptr<RowWatch> Watch(int64_t first_row = 0, bool stateless = false) {
    return recorder_->Watch(
        {.client = "", .manifest = manifest_, .first_row = first_row, .stateless = stateless},
        absl::UnixEpoch());
  }

  static void Send(RowWatch& watch, int64_t base, std::vector<int32_t> tokens) {
    const std::string bytes = Rows(base, static_cast<int64_t>(tokens.size()));
    const auto rows =
        HiddenRows::Create(DType::kF32, static_cast<int64_t>(tokens.size()), 2 * kHidden, bytes);
    watch.OnRows(base, tokens, *rows, absl::UnixEpoch());
  }

  // The samples' tokens, once all that was sent is on disk.
  std::vector<std::vector<int32_t>> End() {
    recorder_.reset();
    const auto recording = LoadRecording(path_);
    EXPECT_THAT(recording, IsOk());
    std::vector<std::vector<int32_t>> tokens;
    if (!recording.ok()) return tokens;
    for (const RecordedSample& sample : recording->samples()) tokens.push_back(sample.tokens);
    return tokens;
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.path("recording");
  Manifest manifest_;
  std::unique_ptr<LiveRecorder> recorder_;
};

TEST_F(LiveRecorderTest, WritesWhatARecordingsReaderTakes) {
  Start({.source = "a test"});
  auto watch = Watch();
  Send(*watch, 0, {11, 12, 13});
  Send(*watch, 3, {14});
  watch.reset();
  EXPECT_THAT(End(), ElementsAre(ElementsAre(11, 12, 13)));
  const auto recording = LoadRecording(path_);
  EXPECT_EQ(recording->target().id, "model");
  EXPECT_EQ(recording->target().num_layers, 8);
  EXPECT_EQ(recording->source(), "a test");
  ASSERT_THAT(recording->tensors(), SizeIs(2));
  EXPECT_EQ(recording->tensors()[0].claim, (TensorClaim{TensorClaim::Kind::kBoundary, 2}));
  EXPECT_EQ(recording->tensors()[1].claim->kind, TensorClaim::Kind::kFinalNorm);
  std::vector<float> values(3 * kHidden);
  recording->rows(0, 1).CopyToFloat(absl::MakeSpan(values));
  EXPECT_EQ(values[0], 1.25f) << "position 1, column 0 of the second capture";
  EXPECT_EQ(values[2 * kHidden + 3], 3.4375f);
}

TEST_F(LiveRecorderTest, KnowsThePromptByTheFirstDraft) {
  Start();
  const Judgement judgement{.proposed = 3, .depth = 3, .accepted = 1};
  auto watch = Watch();
  // A prompt of five tokens, of which the first is never sent, in two calls; 15 is the answer's.
  Send(*watch, 0, {11, 12, 13});
  Send(*watch, 3, {14, 15});
  Send(*watch, 5, {16, 17});
  watch->OnJudgement(judgement, absl::UnixEpoch());
  Send(*watch, 7, {18});
  watch->OnJudgement(judgement, absl::UnixEpoch());
  watch.reset();
  auto never = Watch();
  Send(*never, 0, {21, 22, 23});
  never.reset();
  auto once = Watch();
  Send(*once, 0, {31, 32, 33});
  once->OnJudgement(judgement, absl::UnixEpoch());  // by the call that ends it
  once.reset();
  EXPECT_THAT(End(), SizeIs(3));
  const auto recording = LoadRecording(path_);
  EXPECT_EQ(recording->samples()[0].prompt_tokens, 4) << "11 to 14";
  EXPECT_EQ(recording->samples()[1].prompt_tokens, std::nullopt);
  EXPECT_EQ(recording->samples()[2].prompt_tokens, std::nullopt);
}

TEST_F(LiveRecorderTest, KeepsTheFolderToItsOwner) {
  Start();
  Send(*Watch(), 0, {11, 12});
  End();
  struct stat facts;
  ASSERT_EQ(stat(path_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0700);
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    ASSERT_EQ(stat(entry.path().c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0600) << entry.path();
  }
}

TEST_F(LiveRecorderTest, RecordsSessionsSideBySide) {
  Start();
  auto a = Watch();
  auto b = Watch();
  Send(*a, 0, {11, 12});
  Send(*b, 0, {21, 22, 23});
  Send(*a, 2, {13});
  b.reset();
  a.reset();
  EXPECT_THAT(End(), ElementsAre(ElementsAre(21, 22), ElementsAre(11, 12)));
}

TEST_F(LiveRecorderTest, TakesSessionsThatAreStillOpenAtTheEnd) {
  Start();
  {
    const auto watch = Watch();
    Send(*watch, 0, {11, 12, 13});
  }
  EXPECT_THAT(End(), SizeIs(1));
}

TEST_F(LiveRecorderTest, SeesNoStatelessCallsAndNoSessionsThatBeginLater) {
  Start();
  EXPECT_EQ(Watch(/*first_row=*/5), nullptr);
  EXPECT_EQ(Watch(0, /*stateless=*/true), nullptr);
}

TEST_F(LiveRecorderTest, IsOfOneTargetAndOneDtype) {
  Start();
  Send(*Watch(), 0, {11, 12});
  manifest_.target_id = "another";
  Send(*Watch(), 0, {21, 22});
  manifest_.target_id = "model";
  manifest_.dtype = DType::kBF16;
  Send(*Watch(), 0, {31, 32});
  manifest_.dtype = DType::kF32;
  Send(*Watch(), 0, {41, 42});
  EXPECT_THAT(End(), ElementsAre(ElementsAre(11), ElementsAre(41)));
}

TEST_F(LiveRecorderTest, StopsOnceItHasItsSessions) {
  Start({.sessions = 2});
  auto open = Watch();
  Send(*open, 0, {11, 12});
  Send(*Watch(), 0, {21, 22});
  Send(*Watch(), 0, {31, 32});
  EXPECT_TRUE(recorder_->recording()) << "one is still open";
  open.reset();
  EXPECT_THAT(End(), ElementsAre(ElementsAre(21), ElementsAre(11)));
}

TEST_F(LiveRecorderTest, GivesThePlaceOfASessionThatIsTooShortToAnother) {
  Start({.sessions = 1});
  Send(*Watch(), 0, {11});
  // The place is free once the writing thread has seen the end.
  while (recorder_->recording()) {
    if (auto watch = Watch()) Send(*watch, 0, {21, 22});
    std::this_thread::yield();
  }
  EXPECT_THAT(End(), ElementsAre(ElementsAre(21)));
}

TEST_F(LiveRecorderTest, GivesNoPlaceToASessionThatSendsNothing) {
  Start({.sessions = 1});
  const auto idle = Watch();
  Send(*Watch(), 0, {11, 12});
  EXPECT_THAT(End(), ElementsAre(ElementsAre(11)));
}

TEST_F(LiveRecorderTest, StopsWhenItIsFullAndKeepsWhatItHas) {
  constexpr int64_t kLimit = 64 * 1024;
  Start({.limit_bytes = kLimit});
  auto watch = Watch();
  for (int64_t row = 0; row < 5000; ++row) Send(*watch, row, {static_cast<int32_t>(row % 100)});
  watch.reset();
  const auto tokens = End();
  ASSERT_THAT(tokens, SizeIs(1));
  EXPECT_GT(tokens[0].size(), 100u);
  int64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    bytes += static_cast<int64_t>(entry.file_size());
  }
  EXPECT_LE(bytes, kLimit);
}

TEST_F(LiveRecorderTest, DropsAWholeSessionWhenMoreRowsWaitThanMay) {
  Start({.queue_bytes = 10 * 2 * kHidden * 4});
  auto watch = Watch();
  Send(*watch, 0, {11, 12, 13});
  Send(*watch, 3, {14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24});
  EXPECT_EQ(recorder_->dropped(), 1);
  Send(*watch, 14, {25});  // and all of it: what follows would stand behind a gap
  watch.reset();
  Send(*Watch(), 0, {31, 32});
  EXPECT_THAT(End(), ElementsAre(ElementsAre(31)));
}

TEST_F(LiveRecorderTest, LeavesOutASessionWithAGap) {
  Start();
  auto watch = Watch();
  Send(*watch, 0, {11, 12, 13});
  Send(*watch, 5, {16});
  Send(*watch, 6, {17});
  watch.reset();
  Send(*Watch(), 0, {21, 22});
  EXPECT_THAT(End(), ElementsAre(ElementsAre(21)));
}

TEST_F(LiveRecorderTest, LeavesAnEarlierRecordingAlone) {
  Start();
  Send(*Watch(), 0, {11, 12});
  End();
  EXPECT_THAT(PrepareFolder(path_), StatusIs(absl::StatusCode::kAlreadyExists));
}

TEST(PrepareFolderTest, TakesAnEmptyFolderAndNoOther) {
  const TemporaryFolder folder;
  EXPECT_THAT(PrepareFolder(folder.path()), IsOk());
  ASSERT_TRUE(WriteFile(folder.path("notes.txt"), "mine"));
  const absl::Status status = PrepareFolder(folder.path());
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(std::string(status.message()), HasSubstr("no empty folder"));
  EXPECT_THAT(PrepareFolder(folder.path("none/none")), StatusIs(absl::StatusCode::kUnavailable));
}

TEST(PrepareFolderTest, KnowsTheBeginningOfARecordingThatWasCutOff) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteFile(folder.path("00001.rows"), "x"));
  EXPECT_THAT(PrepareFolder(folder.path()), StatusIs(absl::StatusCode::kAlreadyExists));
}

}  // namespace
}  // namespace aerie
