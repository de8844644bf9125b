#include "common/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace aerie {
namespace {

TEST(LogTest, RefusesALevelThatDoesNotExist) {
  const absl::Status status = SetUpLog("loud");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("\"loud\""));
}

TEST(LogTest, ChangesTheLevelOfARunningProgram) {
  ASSERT_TRUE(SetUpLog("warn").ok());
  EXPECT_FALSE(spdlog::should_log(spdlog::level::info));
  ASSERT_TRUE(SetUpLog("debug").ok());
  EXPECT_TRUE(spdlog::should_log(spdlog::level::info));
}

}  // namespace
}  // namespace aerie
