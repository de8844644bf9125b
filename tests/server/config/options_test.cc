#include "server/config/options.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

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

}  // namespace
}  // namespace aerie
