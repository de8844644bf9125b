#include "server/config/options.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using ::testing::HasSubstr;

TEST(LimitRowsToMessageTest, LowersTheRowsToWhatAMessageHoldsAndSaysSo) {
  Options options;
  options.engine.max_rows_per_call = 4096;
  options.grpc.max_message_bytes = 64 << 20;
  options.settings = {{"max_k", "16", "default"}, {"max_rows_per_call", "4096", "default"}};
  options.LimitRowsToMessage(24576);  // 96 KiB a row in float32
  EXPECT_EQ(options.engine.max_rows_per_call, 682);
  EXPECT_EQ(options.settings[1].value, "682");
  EXPECT_THAT(options.settings[1].source, HasSubstr("max_message_bytes 67108864"));
  EXPECT_THAT(options.settings[1].source, HasSubstr("4096 by default"));
  EXPECT_EQ(options.settings[0].value, "16");
}

TEST(LimitRowsToMessageTest, LeavesAloneWhatFits) {
  Options options;
  options.settings = {{"max_rows_per_call", "4096", "default"}};
  options.LimitRowsToMessage(1728);
  EXPECT_EQ(options.engine.max_rows_per_call, 4096);
  EXPECT_EQ(options.settings[0].source, "default");
}

// 16 rows of 32 bytes a page.
KvStore StoreOf(int32_t pages) {
  return {.page_rows = 16, .num_pages = pages, .page_bytes = 16 * 32};
}

TEST(CheckStoreHoldsASessionTest, WantsRoomForTheLongestSessionAndItsDraft) {
  Options options;
  options.engine.max_context = 1000;
  options.engine.max_k = 8;
  EXPECT_THAT(options.CheckStoreHoldsASession(StoreOf(63)), IsOk()) << "1008 rows";
  const absl::Status status = options.CheckStoreHoldsASession(StoreOf(62));
  EXPECT_THAT(status, Refuses(absl::StatusCode::kInvalidArgument, ""));
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("--kv-memory 1073741824 holds 992 rows"));
  EXPECT_THAT(message, HasSubstr("--max-context 1000 lets one session need 1008"));
  EXPECT_THAT(message, HasSubstr("raise --kv-memory to 32256"));
}

TEST(CheckStoreHoldsASessionTest, AWindowBoundsWhatASessionNeeds) {
  Options options;
  options.engine.max_context = 1'000'000;
  options.engine.max_k = 8;
  options.engine.draft_window = 100;
  options.engine.draft_sink = 4;
  options.engine.max_rows_per_pass = 64;
  EXPECT_THAT(options.CheckStoreHoldsASession(StoreOf(11)), IsOk()) << "176 rows";
  const absl::Status status = options.CheckStoreHoldsASession(StoreOf(10));
  EXPECT_THAT(status, Refuses(absl::StatusCode::kInvalidArgument, ""));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--draft-window 100"));
}

}  // namespace
}  // namespace aerie
