#include "server/verify/verify_flags.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/checkpoint/three_parts.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using testing::HasSubstr;

absl::StatusOr<VerifyFlags> Parse(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"--drafter", "d", "--captures", "c", "--target", "t"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return ParseVerifyFlags(arguments);
}

TEST(VerifyFlagsTest, HaveDefaultsForAllButTheFolders) {
  const auto flags = Parse({});
  ASSERT_THAT(flags, IsOk());
  EXPECT_EQ(flags->drafter, "d");
  EXPECT_EQ(flags->captures, "c");
  EXPECT_EQ(flags->target, "t");
  EXPECT_EQ(flags->json, std::nullopt);
  EXPECT_TRUE(flags->what_if);
  EXPECT_FALSE(flags->write_wiring);
  EXPECT_EQ(flags->options.depth, 5);
  // What is measured anew is not read first.
  EXPECT_TRUE(flags->checkpoint.ignore_wiring_file);
}

TEST(VerifyFlagsTest, TellTheVersionWithoutAFolder) {
  const auto flags = ParseVerifyFlags({"--version"});
  ASSERT_THAT(flags, IsOk());
  EXPECT_THAT(flags->print.value_or(""), testing::StartsWith("aerie-verify 0."));
}

TEST(VerifyFlagsTest, TakeJsonWithAndWithoutAFile) {
  EXPECT_EQ(Parse({"--json"})->json, "");
  EXPECT_EQ(Parse({"--json", "--depth", "3"})->json, "");
  EXPECT_EQ(Parse({"--json", "file"})->json, "file");
}

TEST(VerifyFlagsTest, SetWhatTheyName) {
  const auto flags = Parse({"--rows",
                            "100",
                            "--depth=3",
                            "--alpha",
                            "0.05",
                            "--margin",
                            "0.1",
                            "--html",
                            "h",
                            "--write-wiring",
                            "--no-what-if",
                            "--threads",
                            "2",
                            "--layer-id-convention=input-of-layer",
                            "--coarse-rows",
                            "9",
                            "--max-candidates",
                            "7",
                            "--max-thorough",
                            "6",
                            "--chains",
                            "8"});
  ASSERT_THAT(flags, IsOk());
  EXPECT_EQ(flags->options.max_rows, 100);
  EXPECT_EQ(flags->options.depth, 3);
  EXPECT_EQ(flags->options.max_chains, 8);
  EXPECT_EQ(flags->options.search.statistics.alpha, 0.05);
  EXPECT_EQ(flags->options.search.statistics.margin, 0.1);
  EXPECT_EQ(flags->options.search.coarse_rows, 9);
  EXPECT_EQ(flags->options.search.max_candidates, 7);
  EXPECT_EQ(flags->options.search.max_thorough, 6);
  EXPECT_EQ(flags->html, "h");
  EXPECT_TRUE(flags->write_wiring);
  EXPECT_FALSE(flags->what_if);
  EXPECT_EQ(flags->threads, 2);
  EXPECT_EQ(flags->checkpoint.head.layer_ids, LayerIdConvention::kInputOfLayer);
}

TEST(VerifyFlagsTest, RefuseWhatTheyDoNotKnow) {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--depth", "0"}, {"--rows", "x"}, {"--margin", "0"}, {"--what"}}) {
    const auto flags = Parse(more);
    ASSERT_FALSE(flags.ok()) << more[0];
    EXPECT_THAT(std::string(flags.status().message()), SaysWhatWhyAndHow(more[0]));
  }
  EXPECT_FALSE(ParseVerifyFlags({"--drafter", "d"}).ok());
}

TEST(VerifyFlagsTest, PrintHelp) {
  const auto flags = ParseVerifyFlags({"--help"});
  ASSERT_THAT(flags, IsOk());
  EXPECT_THAT(*flags->print, HasSubstr("3: it is contradicted"));
}

}  // namespace
}  // namespace aerie
