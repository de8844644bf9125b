#include "client/loadtest/flags.h"

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
  EXPECT_EQ(line.ending.exit_code, std::nullopt) << line.ending.text;
  EXPECT_EQ(line.options.address, "127.0.0.1:50051");
  EXPECT_EQ(line.options.transport, TransportKind::kUnary);
  EXPECT_EQ(line.options.deadline, absl::Seconds(30));
  EXPECT_EQ(line.options.accept.ToString(), "0.7");
}

TEST(LoadOptionsTest, ReadsEveryFlag) {
  const CommandLine line = Parse({"--address",  "unix:/tmp/s", "--transport",   "stream",
                                  "--sessions", "3",           "--duration",    "1m",
                                  "--rounds",   "9",           "--warmup",      "500ms",
                                  "--k",        "5",           "--prompt-rows", "17",
                                  "--dtype",    "float16",     "--accept",      "0.5,0.25,0",
                                  "--seed",     "42",          "--deadline",    "2s",
                                  "--json",     "-",           "--quiet",       "--shared-memory"});
  ASSERT_EQ(line.ending.exit_code, std::nullopt) << line.ending.text;
  const LoadOptions& o = line.options;
  EXPECT_EQ(o.address, "unix:/tmp/s");
  EXPECT_EQ(o.transport, TransportKind::kStream);
  EXPECT_EQ(o.sessions.MaxLevel(), 3);
  EXPECT_THAT(o.duration, Optional(absl::Minutes(1)));
  EXPECT_THAT(o.rounds, Optional(9));
  EXPECT_EQ(o.warmup, absl::Milliseconds(500));
  EXPECT_EQ(o.k, 5);
  EXPECT_EQ(o.prompt_rows, 17);
  EXPECT_THAT(o.dtype, Optional(DType::kF16));
  EXPECT_EQ(o.accept.ToString(), "0.5,0.25,0");
  EXPECT_EQ(o.seed, 42u);
  EXPECT_EQ(o.deadline, absl::Seconds(2));
  EXPECT_EQ(o.json_path, "-");
  EXPECT_TRUE(o.quiet);
  EXPECT_TRUE(o.shared_memory);
}

TEST(LoadOptionsTest, ReadsWhatSessionsAskFor) {
  const CommandLine tree =
      Parse({"--tree", "5,4,16", "--temperature", "0.5", "--client", "blue", "--seed", "9"});
  ASSERT_EQ(tree.ending.exit_code, std::nullopt) << tree.ending.text;
  EXPECT_EQ(tree.options.TokensPerRound(), 16);
  SessionOptions expected;
  expected.tree = TreeShape{.depth = 5, .top_k = 4, .total_tokens = 16};
  expected.temperature = 0.5f;
  expected.seed = 9;
  expected.probs = ProposalProbs::kTopM;
  expected.client = "blue";
  EXPECT_EQ(tree.options.SessionOptionsOf(), expected);

  const CommandLine adaptive = Parse({"--adaptive-k", "--k", "6", "--verify-time", "35ms"});
  ASSERT_EQ(adaptive.ending.exit_code, std::nullopt) << adaptive.ending.text;
  EXPECT_EQ(adaptive.options.TokensPerRound(), 6);
  EXPECT_TRUE(adaptive.options.SessionOptionsOf().adaptive_k);
  EXPECT_EQ(adaptive.options.verify_time, absl::Milliseconds(35));
  EXPECT_EQ(Parse({}).options.SessionOptionsOf(), SessionOptions());
}

TEST(LoadOptionsTest, ReadsAnOpenLoop) {
  const CommandLine line = Parse({"--rate",         "100:10s,200-400:20s",
                                  "--arrivals",     "gamma",
                                  "--burstiness",   "0.5",
                                  "--sessions",     "32",
                                  "--connections",  "4",
                                  "--slo",          "p99=20ms",
                                  "--slo",          "rate=90",
                                  "--goodput",      "15ms",
                                  "--fault-cancel", "0.1",
                                  "--csv",          "a.csv",
                                  "--hdr",          "a.hdr"});
  ASSERT_EQ(line.ending.exit_code, std::nullopt) << line.ending.text;
  const LoadOptions& o = line.options;
  ASSERT_TRUE(o.rate.has_value());
  EXPECT_EQ(o.rate->pieces().size(), 2u);
  EXPECT_EQ(o.EndOfLoad(), absl::Seconds(30));
  EXPECT_EQ(o.arrivals, Arrivals::kGamma);
  EXPECT_EQ(o.burstiness, 0.5);
  EXPECT_EQ(o.connections, 4);
  ASSERT_EQ(o.slo.size(), 2u);
  EXPECT_EQ(o.slo[0].quantile, 0.99);
  EXPECT_EQ(o.slo[0].latency, absl::Milliseconds(20));
  EXPECT_EQ(o.slo[1].kind, SloTerm::Kind::kMinRate);
  EXPECT_THAT(o.goodput, Optional(absl::Milliseconds(15)));
  EXPECT_EQ(o.faults.cancel, 0.1);
  EXPECT_EQ(o.csv_path, "a.csv");
  EXPECT_EQ(o.hdr_path, "a.hdr");
}

SweepLine ParseSweepOf(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "sweep");
  return ParseSweep(static_cast<int>(arguments.size()), arguments.data());
}

TEST(SweepFlagsTest, HaveAShortRunAndARangeThatSuitsWhatIsSwept) {
  const SweepLine rate = ParseSweepOf({"--arrivals", "constant"});
  ASSERT_EQ(rate.ending.exit_code, std::nullopt) << rate.ending.text;
  EXPECT_EQ(rate.sweep.over, SweepOver::kRate);
  EXPECT_EQ(rate.sweep.from, 10);
  EXPECT_EQ(rate.options.EndOfLoad(), absl::Seconds(10));
  EXPECT_EQ(rate.options.warmup, absl::Seconds(2));
  const SweepLine k = ParseSweepOf({"--over", "k", "--values", "1,2,4", "--duration", "1s"});
  ASSERT_EQ(k.ending.exit_code, std::nullopt) << k.ending.text;
  EXPECT_THAT(k.sweep.values, ElementsAre(1, 2, 4));
  EXPECT_EQ(k.options.warmup, absl::Milliseconds(200));
}

TEST(SweepFlagsTest, RefuseWhatContradictsTheSweep) {
  EXPECT_THAT(ParseSweepOf({"--rate", "5"}).ending.text,
              AllOf(HasSubstr("--rate"), HasSubstr("--over")));
  EXPECT_THAT(ParseSweepOf({"--over", "k", "--tree", "2,2,4"}).ending.text, HasSubstr("--tree"));
  EXPECT_THAT(ParseSweepOf({"--values", "5", "--from", "2"}).ending.text, HasSubstr("--from"));
  EXPECT_THAT(ParseSweepOf({"--from", "9", "--to", "3"}).ending.exit_code, Optional(2));
}

TEST(CompareFlagsTest, NeedTwoFiles) {
  const char* const one[] = {"compare", "a.json"};
  EXPECT_THAT(ParseCompare(2, one).ending.exit_code, Optional(2));
  const char* const two[] = {"compare", "a.json", "b.json", "--tolerance", "0.2"};
  const CompareLine line = ParseCompare(5, two);
  EXPECT_EQ(line.ending.exit_code, std::nullopt) << line.ending.text;
  EXPECT_EQ(line.before, "a.json");
  EXPECT_EQ(line.after, "b.json");
  EXPECT_EQ(line.tolerance, 0.2);
}

TEST(LoadOptionsTest, HelpTellsEveryFlagAndTheExitCodes) {
  const CommandLine line = Parse({"--help"});
  EXPECT_THAT(line.ending.exit_code, Optional(0));
  for (const char* word :
       {"--address",       "--transport",   "--sessions",    "--requests",    "--duration",
        "--rounds",        "--warmup",      "--k",           "--prompt-rows", "--dtype",
        "--accept",        "--recording",   "--seed",        "--deadline",    "--json",
        "--quiet",         "--tree",        "--temperature", "--adaptive-k",  "--verify-time",
        "--client",        "--rate",        "--arrivals",    "--burstiness",  "--think-time",
        "--total-rounds",  "--connections", "--slo",         "--goodput",     "--error-budget",
        "--metrics",       "--html",        "--csv",         "--hdr",         "--fault-cancel",
        "--shared-memory", "Exit code"}) {
    EXPECT_THAT(line.ending.text, HasSubstr(word));
  }
}

TEST(LoadOptionsTest, TellsItsVersion) {
  const CommandLine line = Parse({"--version"});
  EXPECT_THAT(line.ending.exit_code, Optional(0));
  EXPECT_THAT(line.ending.text, ::testing::StartsWith("aerie-load "));
}

struct BadUsage {
  std::string name;
  std::vector<std::string> arguments;
  std::string flag, value;
};

class BadUsageTest : public ::testing::TestWithParam<BadUsage> {};

TEST_P(BadUsageTest, StopsWithCodeTwoAndNamesFlagAndValue) {
  const CommandLine line = Parse(GetParam().arguments);
  EXPECT_THAT(line.ending.exit_code, Optional(2));
  EXPECT_THAT(line.ending.text, AllOf(HasSubstr(GetParam().flag), HasSubstr(GetParam().value)));
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
        {"RateWithoutEnd", {"--rate", "5"}, "--rate", "--duration"},
        {"RateAndThinkTime",
         {"--rate", "5", "--duration", "1s", "--think-time", "5ms"},
         "--think-time",
         "--rate"},
        {"ProfileOfSessionsInAnOpenLoop",
         {"--rate", "5:1s", "--sessions", "1:1s,2:1s"},
         "--sessions",
         "--rate"},
        {"TwoEnds", {"--sessions", "1:1s,2:1s", "--duration", "2s"}, "--duration", "together"},
        {"RampWithoutTime", {"--rate", "5-10", "--duration", "1s"}, "--rate", "5-10"},
        {"ArrivalsForNobody", {"--arrivals", "constant"}, "--arrivals", "--rate"},
        {"BurstinessForNobody",
         {"--rate", "5:1s", "--burstiness", "2"},
         "--burstiness",
         "--arrivals gamma"},
        {"SloWithoutLimit", {"--slo", "p99"}, "--slo", "p99"},
        {"SloOfNothing", {"--slo", "p100=1s"}, "--slo", "p100=1s"},
        {"FaultsAboveAll", {"--fault-cancel", "1.5"}, "--fault-cancel", "1.5"},
        {"TwoReportsToTheTerminal", {"--json", "-", "--csv", "-"}, "-", "several"},
        {"LooseWord", {"hello"}, "hello", ""}}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace aerie::loadtest
