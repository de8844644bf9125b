#include "client/row_chunks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "aerie/v1/draft.pb.h"

namespace aerie {
namespace {

using ::testing::ValuesIn;

struct ChunkCase {
  std::string name;
  RowLimits limits;
  int64_t row_bytes;
  int64_t expected;
};

class RowsPerCallTest : public ::testing::TestWithParam<ChunkCase> {};

TEST_P(RowsPerCallTest, IsTheSmallerOfRowsAndBytes) {
  const auto rows = RowsPerCall(GetParam().limits, GetParam().row_bytes);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(*rows, GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(Cases, RowsPerCallTest,
                         ValuesIn(std::vector<ChunkCase>{
                             {"RowsAreFewer", {10, 1 << 20}, 100, 10},
                             {"BytesAreFewer", {1000, 1024 + 4 * 105}, 100, 4},
                             {"OneByteShortOfARow", {1000, 1024 + 4 * 105 - 1}, 100, 3},
                             {"OneRowJustFits", {1000, 1024 + 105}, 100, 1}}),
                         [](const auto& test) { return test.param.name; });

TEST(RowsPerCallLimitTest, RefusesARowThatFitsNoMessage) {
  EXPECT_EQ(RowsPerCall({1000, 1024 + 104}, 100).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(RowsPerCall({1000, 10}, 100).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(RowsPerCallLimitTest, LeavesRoomForEverythingElseOfTheLargestMessage) {
  const int64_t limit = 1 << 20, row_bytes = 3456;
  const int64_t rows = *RowsPerCall({1 << 20, limit}, row_bytes);
  v1::DraftStreamRequest message;
  message.set_id(UINT64_MAX);
  v1::DraftRequest& draft = *message.mutable_draft();
  v1::Manifest& manifest = *draft.mutable_manifest();
  manifest.set_target_id(std::string(256, 'x'));
  for (uint32_t i = 0; i < 32; ++i) {
    manifest.add_captures()->set_boundary(1000 + i);
    manifest.mutable_captures(static_cast<int>(i))->set_kind(v1::CAPTURE_KIND_BOUNDARY);
  }
  draft.set_seq(UINT64_MAX);
  draft.set_base_length(UINT32_MAX);
  draft.set_k(UINT32_MAX);
  draft.set_accepted(UINT32_MAX);
  draft.mutable_hidden_states()->set_dtype(v1::DATA_TYPE_FLOAT32);
  draft.mutable_hidden_states()->set_data(std::string(static_cast<size_t>(rows * row_bytes), '\0'));
  for (int64_t i = 0; i < rows; ++i) draft.add_token_ids(INT32_MAX);
  EXPECT_LE(static_cast<int64_t>(message.ByteSizeLong()), limit);
}

}  // namespace
}  // namespace aerie
