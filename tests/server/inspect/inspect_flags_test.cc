#include "server/inspect/inspect_flags.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/checkpoint/three_parts.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(InspectFlagsTest, AFolderIsEnough) {
  const auto options = ParseInspectFlags({"models/head"});
  ASSERT_THAT(options, IsOk());
  EXPECT_EQ(options->drafter, "models/head");
  EXPECT_EQ(options->target, "");
  EXPECT_FALSE(options->json);
  EXPECT_FALSE(options->checkpoint.head.layer_ids.has_value());
  EXPECT_FALSE(options->checkpoint.head.norm_before_residual.has_value());
  EXPECT_THAT(options->checkpoint.head.ignored_config_keys, IsEmpty());
}

TEST(InspectFlagsTest, TheVersionIsToldWithoutAFolder) {
  const auto options = ParseInspectFlags({"--version"});
  ASSERT_THAT(options, IsOk());
  EXPECT_THAT(options->print.value_or(""), testing::StartsWith("aerie-inspect 0."));
}

TEST(InspectFlagsTest, OverridesReachTheLoader) {
  const auto options = ParseInspectFlags(
      {"head", "--target", "target", "--json", "--bandwidth=80", "--embedding-key=wte",
       "--layer-id-convention=output-of-layer", "--norm-before-residual=on", "--norm-output=off",
       "--rope-theta=5e5", "--ignore-config-key", "a", "--ignore-config-key=b.c"});
  ASSERT_THAT(options, IsOk());
  const HeadConfigOptions& head = options->checkpoint.head;
  EXPECT_EQ(options->target, "target");
  EXPECT_TRUE(options->json);
  EXPECT_EQ(options->gigabytes_per_second, 80.0);
  EXPECT_EQ(options->checkpoint.embedding_key, "wte");
  EXPECT_EQ(head.layer_ids, LayerIdConvention::kOutputOfLayer);
  EXPECT_EQ(head.norm_before_residual, true);
  EXPECT_EQ(head.norm_output, false);
  EXPECT_EQ(head.rope_theta, 5e5);
  EXPECT_THAT(head.ignored_config_keys, ElementsAre("a", "b.c"));
}

TEST(InspectFlagsTest, AnIgnoredKeyDoesNotSwallowTheFolder) {
  const auto options = ParseInspectFlags({"--ignore-config-key", "a", "head"});
  ASSERT_THAT(options, IsOk());
  EXPECT_EQ(options->drafter, "head");
}

TEST(InspectFlagsTest, HelpIsToBePrinted) {
  const auto options = ParseInspectFlags({"--help"});
  ASSERT_THAT(options, IsOk());
  EXPECT_THAT(*options->print, HasSubstr("--layer-id-convention"));
}

TEST(InspectFlagsTest, WhatCannotBeReadIsRefused) {
  using Arguments = std::vector<std::string>;
  for (const Arguments& arguments :
       {Arguments{}, Arguments{"a", "b"}, Arguments{"a", "--unknown"},
        Arguments{"a", "--bandwidth=0"}, Arguments{"a", "--norm-output=yes"},
        Arguments{"a", "--layer-id-convention=both"}, Arguments{"a", "--rope-theta=many"}}) {
    const auto options = ParseInspectFlags(arguments);
    ASSERT_THAT(options, StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(std::string(options.status().message()),
                SaysWhatWhyAndHow("the command line cannot be read"));
  }
}

}  // namespace
}  // namespace aerie
