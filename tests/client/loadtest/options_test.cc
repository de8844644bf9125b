#include "client/loadtest/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace aerie::loadtest {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::ValuesIn;

CommandLine Parse(std::vector<std::string> arguments) {
  std::vector<const char*> argv = {"aerie-load"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  return ParseCommandLine(static_cast<int>(argv.size()), argv.data());
}

TEST(LoadOptionsTest, HasUsableDefaults) {
  const CommandLine line = Parse({});
  EXPECT_EQ(line.exit_code, std::nullopt) << line.text;
  EXPECT_EQ(line.options.address, "127.0.0.1:50051");
  EXPECT_EQ(line.options.transport, TransportKind::kUnary);
  EXPECT_EQ(line.options.deadline, absl::Seconds(30));
  EXPECT_THAT(line.options.accept, ElementsAre(0.7));
}

TEST(LoadOptionsTest, ReadsEveryFlag) {
  const CommandLine line =
      Parse({"--address",  "unix:/tmp/s", "--transport",   "stream", "--sessions", "3",
             "--duration", "1m",          "--rounds",      "9",      "--warmup",   "500ms",
             "--k",        "5",           "--prompt-rows", "17",     "--dtype",    "float16",
             "--accept",   "0.5,0.25,0",  "--seed",        "42",     "--deadline", "2s",
             "--json",     "-",           "--quiet"});
  ASSERT_EQ(line.exit_code, std::nullopt) << line.text;
  const LoadOptions& o = line.options;
  EXPECT_EQ(o.address, "unix:/tmp/s");
  EXPECT_EQ(o.transport, TransportKind::kStream);
  EXPECT_EQ(o.sessions, 3);
  EXPECT_THAT(o.duration, Optional(absl::Minutes(1)));
  EXPECT_THAT(o.rounds, Optional(9));
  EXPECT_EQ(o.warmup, absl::Milliseconds(500));
  EXPECT_EQ(o.k, 5);
  EXPECT_EQ(o.prompt_rows, 17);
  EXPECT_THAT(o.dtype, Optional(DType::kF16));
  EXPECT_THAT(o.accept, ElementsAre(0.5, 0.25, 0.0));
  EXPECT_EQ(o.seed, 42u);
  EXPECT_EQ(o.deadline, absl::Seconds(2));
  EXPECT_EQ(o.json_path, "-");
  EXPECT_TRUE(o.quiet);
}

TEST(LoadOptionsTest, ReadsWhatSessionsAskFor) {
  const CommandLine tree =
      Parse({"--tree", "5,4,16", "--temperature", "0.5", "--client", "blue", "--seed", "9"});
  ASSERT_EQ(tree.exit_code, std::nullopt) << tree.text;
  EXPECT_EQ(tree.options.TokensPerRound(), 16);
  SessionOptions expected;
  expected.tree = TreeShape{.depth = 5, .top_k = 4, .total_tokens = 16};
  expected.temperature = 0.5f;
  expected.seed = 9;
  expected.probs = ProposalProbs::kTopM;
  expected.client = "blue";
  EXPECT_EQ(tree.options.SessionOptionsOf(), expected);

  const CommandLine adaptive = Parse({"--adaptive-k", "--k", "6", "--verify-time", "35ms"});
  ASSERT_EQ(adaptive.exit_code, std::nullopt) << adaptive.text;
  EXPECT_EQ(adaptive.options.TokensPerRound(), 6);
  EXPECT_TRUE(adaptive.options.SessionOptionsOf().adaptive_k);
  EXPECT_EQ(adaptive.options.verify_time, absl::Milliseconds(35));
  EXPECT_EQ(Parse({}).options.SessionOptionsOf(), SessionOptions());
}

TEST(LoadOptionsTest, HelpTellsEveryFlagTheJsonAndTheExitCodes) {
  const CommandLine line = Parse({"--help"});
  EXPECT_THAT(line.exit_code, Optional(0));
  for (const char* word : {"--address",     "--transport",     "--sessions",     "--requests",
                           "--duration",    "--rounds",        "--warmup",       "--k",
                           "--prompt-rows", "--dtype",         "--accept",       "--recording",
                           "--seed",        "--deadline",      "--json",         "--quiet",
                           "--tree",        "--temperature",   "--adaptive-k",   "--verify-time",
                           "--client",      "latency_seconds", "reconciliation", "Exit code"}) {
    EXPECT_THAT(line.text, HasSubstr(word));
  }
}

TEST(LoadOptionsTest, TellsItsVersion) {
  const CommandLine line = Parse({"--version"});
  EXPECT_THAT(line.exit_code, Optional(0));
  EXPECT_THAT(line.text, ::testing::StartsWith("aerie-load "));
}

struct BadUsage {
  std::string name;
  std::vector<std::string> arguments;
  std::string flag, value;
};

class BadUsageTest : public ::testing::TestWithParam<BadUsage> {};

TEST_P(BadUsageTest, StopsWithCodeTwoAndNamesFlagAndValue) {
  const CommandLine line = Parse(GetParam().arguments);
  EXPECT_THAT(line.exit_code, Optional(2));
  EXPECT_THAT(line.text, AllOf(HasSubstr(GetParam().flag), HasSubstr(GetParam().value)));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BadUsageTest,
    ValuesIn(std::vector<BadUsage>{
        {"UnknownFlag", {"--sesions", "3"}, "--sesions", ""},
        {"NoSessions", {"--sessions", "0"}, "--sessions", "0"},
        {"WordForANumber", {"--k", "four"}, "--k", "four"},
        {"KTooLarge", {"--k", "129"}, "--k", "129"},
        {"TimeWithoutUnit", {"--duration", "30"}, "--duration", "30"},
        {"NothingLeftAfterWarmup", {"--duration", "1s", "--warmup", "1s"}, "--duration", "1s"},
        {"NegativeWarmup", {"--warmup", "-1s"}, "--warmup", "-1s"},
        {"DeadlineOfZero", {"--deadline", "0s"}, "--deadline", "0"},
        {"RequestsAndDuration",
         {"--requests", "5", "--duration", "2s"},
         "--requests",
         "--duration"},
        {"ProbabilityAboveOne", {"--accept", "0.5,1.5"}, "--accept", "1.5"},
        {"ProbabilityNotANumber", {"--accept", "nan"}, "--accept", "nan"},
        {"AcceptNoNumber", {"--accept", "0.5,x"}, "--accept", "0.5,x"},
        {"UnknownTransport", {"--transport", "pigeon"}, "--transport", "pigeon"},
        {"UnknownDType", {"--dtype", "int8"}, "--dtype", "int8"},
        {"NoPrompt", {"--prompt-rows", "0"}, "--prompt-rows", "0"},
        {"NoRounds", {"--rounds", "0"}, "--rounds", "0"},
        {"AcceptWithARecording", {"--recording", "d", "--accept", "1"}, "--accept", "--recording"},
        {"HalfATree", {"--tree", "5,4"}, "--tree", "5,4"},
        {"TreeOfWords", {"--tree", "5,four,16"}, "--tree", "5,four,16"},
        {"TreeOfWidthOne", {"--tree", "5,1,5"}, "--tree", "options.tree.top_k is 1"},
        {"TreeAndK", {"--tree", "5,4,16", "--k", "3"}, "--k", "--tree"},
        {"AdaptiveTree", {"--tree", "5,4,16", "--adaptive-k"}, "--adaptive-k", "options.tree"},
        {"NegativeTemperature", {"--temperature=-1"}, "--temperature", "-1"},
        {"LongClient", {"--client", std::string(65, 'c')}, "--client", "65 bytes"},
        {"VerifyTimeForNobody", {"--verify-time", "5ms"}, "--verify-time", "--adaptive-k"},
        {"NoVerifyTime", {"--adaptive-k", "--verify-time", "0s"}, "--verify-time", "0"},
        {"LooseWord", {"hello"}, "hello", ""}}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace aerie::loadtest
