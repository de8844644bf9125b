// Rows that came round by round, as a sample of a recording.
#include "server/recording/session_spool.h"

#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "common/safetensors/safetensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/checkpoint/tiny_head.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using testing::ElementsAre;

const SpoolShape kShape{DType::kF32, 3, {"a", "b"}};

// Of each row and column another value: row.column, a thousand more for what is sent a second time.
std::string Rows(int64_t first, int64_t count, float more = 0) {
  std::string bytes;
  for (int64_t row = first; row < first + count; ++row) {
    for (int column = 0; column < 6; ++column) {
      const float value = more + static_cast<float>(row) + 0.125f * static_cast<float>(column);
      bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
    }
  }
  return bytes;
}

template <typename T>
std::vector<T> ValuesOf(const TensorSpan& tensor) {
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

class SessionSpoolTest : public testing::Test {
 protected:
  SessionSpoolTest() : spool_(*SessionSpool::Create(folder_.path("1.rows"), kShape)) {}

  SafetensorsFile WriteAndOpen() {
    EXPECT_THAT(spool_->WriteSample(folder_.path("1.safetensors"), "1"), IsOk());
    auto file = SafetensorsFile::Open(folder_.path("1.safetensors"));
    EXPECT_THAT(file, IsOk());
    return *std::move(file);
  }

  const TemporaryFolder folder_;
  std::unique_ptr<SessionSpool> spool_;
};

TEST_F(SessionSpoolTest, PairsEachStateWithItsOwnTokenFromPositionOneOn) {
  ASSERT_THAT(spool_->Add(0, {11, 12}, Rows(0, 2)), IsOk());
  ASSERT_THAT(spool_->Add(2, {13}, Rows(2, 1)), IsOk());
  EXPECT_EQ(spool_->sample_tokens(), 2);
  const SafetensorsFile file = WriteAndOpen();
  EXPECT_THAT(ValuesOf<int32_t>(*file.Find("1.tokens")), ElementsAre(11, 12));
  EXPECT_THAT(ValuesOf<float>(*file.Find("1.a")),
              ElementsAre(1.0f, 1.125f, 1.25f, 2.0f, 2.125f, 2.25f));
  EXPECT_THAT(ValuesOf<float>(*file.Find("1.b")),
              ElementsAre(1.375f, 1.5f, 1.625f, 2.375f, 2.5f, 2.625f));
}

TEST_F(SessionSpoolTest, TakesTheRowsThatCameLast) {
  ASSERT_THAT(spool_->Add(0, {11, 12, 13, 14}, Rows(0, 4)), IsOk());
  ASSERT_THAT(spool_->Add(2, {23}, Rows(2, 1, 1000)), IsOk());
  EXPECT_EQ(spool_->rows(), 3) << "the fourth row was taken back";
  EXPECT_EQ(spool_->bytes(), 4 * 24) << "and still takes room";
  const SafetensorsFile file = WriteAndOpen();
  EXPECT_THAT(ValuesOf<int32_t>(*file.Find("1.tokens")), ElementsAre(11, 12));
  EXPECT_EQ(ValuesOf<float>(*file.Find("1.a"))[3], 1002.0f);
}

TEST_F(SessionSpoolTest, RefusesRowsBehindAGap) {
  ASSERT_THAT(spool_->Add(0, {11, 12}, Rows(0, 2)), IsOk());
  EXPECT_THAT(spool_->Add(3, {14}, Rows(3, 1)), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(SessionSpoolTest, CopiesLongSessionsWhole) {
  // More than one chunk, and no whole number of them.
  constexpr int64_t kRows = 100'001;
  std::vector<int32_t> tokens(kRows);
  for (int64_t i = 0; i < kRows; ++i) tokens[static_cast<size_t>(i)] = static_cast<int32_t>(i + 1);
  ASSERT_THAT(spool_->Add(0, tokens, Rows(0, kRows)), IsOk());
  const SafetensorsFile file = WriteAndOpen();
  const std::vector<float> b = ValuesOf<float>(*file.Find("1.b"));
  ASSERT_EQ(b.size(), 3 * (kRows - 1));
  for (size_t i = 0; i < b.size(); ++i) {
    const float row = static_cast<float>(i / 3 + 1);
    ASSERT_EQ(b[i], row + 0.125f * static_cast<float>(3 + i % 3)) << i;
  }
}

TEST_F(SessionSpoolTest, HasNoSampleBeforeItsSecondRow) {
  EXPECT_EQ(spool_->sample_tokens(), 0);
  ASSERT_THAT(spool_->Add(0, {11}, Rows(0, 1)), IsOk());
  EXPECT_EQ(spool_->sample_tokens(), 0);
}

TEST_F(SessionSpoolTest, LeavesNothingBehindAndLetsNobodyElseRead) {
  ASSERT_THAT(spool_->Add(0, {11, 12}, Rows(0, 2)), IsOk());
  WriteAndOpen();
  for (const char* name : {"1.rows", "1.safetensors"}) {
    struct stat facts;
    ASSERT_EQ(stat(folder_.path(name).c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0600) << name;
  }
  spool_.reset();
  EXPECT_FALSE(std::filesystem::exists(folder_.path("1.rows")));
}

}  // namespace
}  // namespace aerie
