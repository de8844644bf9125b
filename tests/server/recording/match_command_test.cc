// The command line of `aerie-verify match`, its exit codes and its JSON.
#include "server/recording/match_command.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/checkpoint/three_parts.h"
#include "tests/server/recording/toy_target.h"

namespace aerie {
namespace {

using testing::HasSubstr;

class MatchCommandTest : public testing::Test {
 protected:
  MatchCommandTest() {
    const auto texts = ToyTexts(2, 20, 1);
    ToyRecording{.texts = texts, .tensors = {{"aux_0", At(3), R"({"kind": "embedding"})", "embed"}}}
        .Write(dump_);
    ToyRecording{
        .texts = texts,
        .tensors = {{"b2", At(2)}, {"b3", At(3), R"({"kind": "boundary", "boundary": 3})"}}}
        .Write(live_);
  }

  const TemporaryFolder dump_, live_;
};

TEST_F(MatchCommandTest, JsonCarriesVerdictMarginAndContradictions) {
  const CommandOutput output = RunMatch({dump_.path(), live_.path(), "--json"});
  EXPECT_EQ(output.exit_code, 3);
  EXPECT_EQ(output.err, "");
  const auto json = nlohmann::json::parse(output.out);
  EXPECT_EQ(json["method"], "rows");
  ASSERT_EQ(json["matches"].size(), 1);
  EXPECT_EQ(json["matches"][0]["tensor"], "aux_0");
  EXPECT_EQ(json["matches"][0]["verdict"], "same");
  EXPECT_EQ(json["matches"][0]["best"], "b3");
  EXPECT_EQ(json["matches"][0]["runner_up"], "b2");
  EXPECT_GT(json["matches"][0]["margin"], 0.9);
  EXPECT_TRUE(json["matches"][0]["claims_differ"]);
  EXPECT_EQ(json["a"]["tensors"][0]["claim"]["kind"], "embedding");
  EXPECT_GE(json["contradictions"].size(), 1);
}

TEST_F(MatchCommandTest, TextIsATableAndItsConclusions) {
  const CommandOutput output = RunMatch({dump_.path(), live_.path()});
  EXPECT_THAT(output.out, HasSubstr("tensor of A"));
  EXPECT_THAT(output.out, HasSubstr("Contradicted:"));
}

TEST_F(MatchCommandTest, ARecordingThatCannotBeReadEndsWithTwo) {
  const CommandOutput output = RunMatch({dump_.path(), live_.path("nowhere")});
  EXPECT_EQ(output.exit_code, 2);
  EXPECT_EQ(output.out, "");
  EXPECT_THAT(output.err, HasSubstr("recording.json"));
}

TEST_F(MatchCommandTest, ACommandLineThatCannotBeReadEndsWithOne) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{}, {dump_.path()}, {dump_.path(), live_.path(), "--jsn"}}) {
    const CommandOutput output = RunMatch(arguments);
    EXPECT_EQ(output.exit_code, 1);
    EXPECT_THAT(output.err, SaysWhatWhyAndHow("command line cannot be read"));
  }
}

TEST_F(MatchCommandTest, HelpIsPrintedAndEndsWithZero) {
  const CommandOutput output = RunMatch({"--help"});
  EXPECT_EQ(output.exit_code, 0);
  EXPECT_THAT(output.out, HasSubstr("--json"));
}

}  // namespace
}  // namespace aerie
