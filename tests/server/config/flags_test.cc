#include "server/config/flags.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/config/flag_table.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

using Variables = std::map<std::string, std::string>;

absl::StatusOr<Invocation> Parse(const std::vector<std::string>& arguments,
                                 const Variables& variables = {}) {
  return ParseCommandLine(arguments, [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

// With the flags that must be there.
absl::StatusOr<Invocation> ParseMore(std::vector<std::string> arguments,
                                     const Variables& variables = {}) {
  arguments.insert(arguments.begin(), {"--drafter", "d", "--target", "t"});
  return Parse(arguments, variables);
}

Setting SettingOf(const Options& options, const std::string& name) {
  for (const Setting& setting : options.settings) {
    if (setting.name == name) return setting;
  }
  ADD_FAILURE() << "no setting " << name;
  return {};
}

TEST(FlagsTest, ReadsEveryFlagIntoItsOption) {
  const auto parsed = Parse({"--drafter",
                             "D",
                             "--target=T",
                             "--name",
                             "N",
                             "--layer-id-convention",
                             "output-of-layer",
                             "--device",
                             "cpu",
                             "--dtype",
                             "float32",
                             "--threads",
                             "3",
                             "--max-k",
                             "4",
                             "--max-rows-per-call",
                             "5",
                             "--max-sessions",
                             "6",
                             "--max-queued",
                             "7",
                             "--max-context",
                             "8",
                             "--max-rows-per-pass",
                             "9",
                             "--max-sessions-per-pass",
                             "10",
                             "--session-lease",
                             "11s",
                             "--max-sessions-per-client",
                             "5",
                             "--max-queued-per-client",
                             "6",
                             "--client-weight",
                             "blue=3",
                             "--client-weight",
                             "a=b=1000",
                             "--client-weight",
                             "=2",
                             "--max-rows-per-second-per-client",
                             "5000",
                             "--row-burst-per-client",
                             "9000",
                             "--max-bytes-in-flight-per-client",
                             "13MiB",
                             "--target-quota",
                             "a:b=c=3:400",
                             "--target-quota",
                             "*=5",
                             "--kv-memory",
                             "3GiB",
                             "--kv-page-rows",
                             "32",
                             "--draft-window",
                             "500",
                             "--draft-sink",
                             "8",
                             "--max-message-bytes",
                             "12MiB",
                             "--listen",
                             "127.0.0.1:0",
                             "--listen",
                             "unix:/tmp/x",
                             "--metrics-listen",
                             "off",
                             "--admin-listen",
                             "unix:/tmp/y",
                             "--reflection",
                             "off",
                             "--shared-memory",
                             "--max-shared-memory-per-client",
                             "2MiB",
                             "--max-shared-segments-per-client",
                             "3",
                             "--wiring-guard",
                             "not-serving",
                             "--record",
                             "R",
                             "--record-limit",
                             "2GiB",
                             "--record-sessions",
                             "3",
                             "--drain-timeout",
                             "13s",
                             "--log-level",
                             "warn",
                             "--log-format",
                             "json",
                             "--request-log",
                             "R",
                             "--request-log-size",
                             "2MiB",
                             "--request-log-files",
                             "7",
                             "--port-file",
                             "P"});
  ASSERT_THAT(parsed, IsOk());
  const Options& options = parsed->options;
  EXPECT_EQ(options.drafter.drafter, "D");
  EXPECT_EQ(options.drafter.target, "T");
  EXPECT_EQ(options.drafter.name, "N");
  EXPECT_EQ(options.drafter.layer_ids, LayerIdConvention::kOutputOfLayer);
  EXPECT_EQ(options.compute.device, "cpu");
  EXPECT_EQ(options.compute.dtype, "float32");
  EXPECT_EQ(options.compute.threads, 3);
  EXPECT_EQ(options.engine.max_k, 4);
  EXPECT_EQ(options.engine.max_rows_per_call, 5);
  EXPECT_EQ(options.engine.max_sessions, 6);
  EXPECT_EQ(options.engine.max_queued, 7);
  EXPECT_EQ(options.engine.max_context, 8);
  EXPECT_EQ(options.engine.max_rows_per_pass, 9);
  EXPECT_EQ(options.engine.max_sessions_per_pass, 10);
  EXPECT_EQ(options.engine.session_lease, absl::Seconds(11));
  EXPECT_EQ(options.engine.max_sessions_per_client, 5);
  EXPECT_TRUE(options.shared_memory.enabled);
  EXPECT_EQ(options.shared_memory.max_bytes_per_client, 2 << 20);
  EXPECT_EQ(options.shared_memory.max_segments_per_client, 3);
  EXPECT_EQ(options.engine.max_queued_per_client, 6);
  EXPECT_THAT(options.engine.client_weights,
              ElementsAre(Pair("", 2), Pair("a=b", 1000), Pair("blue", 3)));
  EXPECT_EQ(options.clients.max_rows_per_second, 5000);
  EXPECT_EQ(options.clients.row_burst, 9000);
  EXPECT_EQ(options.clients.max_bytes_in_flight, 13 << 20);
  EXPECT_THAT(options.engine.target_quotas,
              ElementsAre(Pair("*", TargetQuota{5, 0}), Pair("a:b=c", TargetQuota{3, 400})));
  EXPECT_EQ(options.kv.memory_bytes, int64_t{3} << 30);
  EXPECT_EQ(options.kv.page_rows, 32);
  EXPECT_EQ(options.engine.draft_window, 500);
  EXPECT_EQ(options.engine.draft_sink, 8);
  EXPECT_EQ(options.grpc.max_message_bytes, 12 << 20);
  EXPECT_THAT(options.grpc.listen, ElementsAre("127.0.0.1:0", "unix:/tmp/x"));
  EXPECT_FALSE(options.metrics.enabled());
  EXPECT_EQ(options.admin.listen, "unix:/tmp/y");
  EXPECT_EQ(options.wiring_guard, GuardMode::kNotServing);
  EXPECT_EQ(options.record.folder, "R");
  EXPECT_EQ(options.record.limit_bytes, int64_t{2} << 30);
  EXPECT_EQ(options.record.sessions, 3);
  EXPECT_FALSE(options.grpc.reflection);
  EXPECT_EQ(options.process.drain_timeout, absl::Seconds(13));
  EXPECT_EQ(options.process.log_level, "warn");
  EXPECT_EQ(options.process.log_format, "json");
  EXPECT_EQ(options.request_log.path, "R");
  EXPECT_EQ(options.request_log.max_bytes, 2 << 20);
  EXPECT_EQ(options.request_log.max_files, 7);
  EXPECT_EQ(options.process.port_file, "P");
}

TEST(FlagsTest, WhatBeatsTheCheckpointReachesTheDrafter) {
  const auto parsed =
      ParseMore({"--embedding-key", "wte", "--norm-before-residual", "on", "--norm-output", "off",
                 "--rope-theta", "5e5", "--ignore-config-key", "a", "--ignore-config-key", "b.c"});
  ASSERT_THAT(parsed, IsOk());
  const DrafterOptions& drafter = parsed->options.drafter;
  EXPECT_EQ(drafter.embedding_key, "wte");
  EXPECT_EQ(drafter.norm_before_residual, true);
  EXPECT_EQ(drafter.norm_output, false);
  EXPECT_EQ(drafter.rope_theta, 5e5);
  EXPECT_THAT(drafter.ignored_config_keys, ElementsAre("a", "b.c"));
  EXPECT_EQ(SettingOf(parsed->options, "ignore_config_key"),
            (Setting{"ignore_config_key", "a,b.c", "flag --ignore-config-key"}));

  const DrafterOptions untouched = ParseMore({})->options.drafter;
  EXPECT_EQ(untouched.norm_before_residual, std::nullopt);
  EXPECT_EQ(untouched.norm_output, std::nullopt);
  EXPECT_EQ(untouched.rope_theta, std::nullopt);
  EXPECT_THAT(untouched.ignored_config_keys, ElementsAre());
}

TEST(FlagsTest, WhatBeatsTheCheckpointMayComeFromTheEnvironment) {
  const auto parsed = ParseMore({}, {{"AERIE_NORM_BEFORE_RESIDUAL", "off"},
                                     {"AERIE_NORM_OUTPUT", "on"},
                                     {"AERIE_ROPE_THETA", "10000"},
                                     {"AERIE_IGNORE_CONFIG_KEY", "a,b.c"},
                                     {"AERIE_CLIENT_WEIGHT", "blue=3,red=4"}});
  ASSERT_THAT(parsed, IsOk());
  EXPECT_EQ(parsed->options.drafter.norm_before_residual, false);
  EXPECT_EQ(parsed->options.drafter.norm_output, true);
  EXPECT_EQ(parsed->options.drafter.rope_theta, 1e4);
  EXPECT_THAT(parsed->options.drafter.ignored_config_keys, ElementsAre("a", "b.c"));
  EXPECT_THAT(parsed->options.engine.client_weights, ElementsAre(Pair("blue", 3), Pair("red", 4)));
}

TEST(FlagsTest, TheDefaultSinkNeedsNoWindow) {
  const auto parsed = ParseMore({});
  ASSERT_THAT(parsed, IsOk());
  EXPECT_EQ(parsed->options.engine.draft_window, 0);
  EXPECT_GT(parsed->options.engine.draft_sink, 0);
}

TEST(FlagsTest, TheDefaultsAreThoseOfTheStructsAndOfTheHelp) {
  const auto parsed = ParseMore({});
  ASSERT_THAT(parsed, IsOk());
  const Options defaults;
  EXPECT_EQ(parsed->options.engine.max_k, defaults.engine.max_k);
  EXPECT_EQ(parsed->options.grpc.listen, defaults.grpc.listen);
  EXPECT_EQ(parsed->options.grpc.max_message_bytes, 64 << 20);
  EXPECT_EQ(parsed->options.drafter.layer_ids, std::nullopt);
  // A default that is shown reads back as the value in force.
  for (const Flag& flag : FlagTable()) {
    if (flag.default_text.empty()) continue;
    // A sink that is asked for needs a window; it has none by default.
    std::vector<std::string> arguments = {"--" + flag.name, flag.default_text};
    if (flag.name == "draft-sink") arguments.insert(arguments.end(), {"--draft-window", "64"});
    // Likewise the bounds of a recording.
    if (flag.name.starts_with("record-")) arguments.insert(arguments.end(), {"--record", "r"});
    // Nor has the size of a request log without one.
    if (flag.name.starts_with("request-log-")) {
      arguments.insert(arguments.end(), {"--request-log", "F"});
    }
    // Nor have the quotas of shared memory that is off.
    if (flag.name.starts_with("max-shared-")) arguments.push_back("--shared-memory");
    const auto explicitly = ParseMore(arguments);
    ASSERT_THAT(explicitly, IsOk());
    const std::string name = explicitly->options.settings.front().name;
    EXPECT_EQ(explicitly->options.engine.session_lease, defaults.engine.session_lease) << name;
    EXPECT_EQ(explicitly->options.grpc.max_message_bytes, defaults.grpc.max_message_bytes);
    EXPECT_EQ(explicitly->options.engine.max_context, defaults.engine.max_context);
    EXPECT_EQ(explicitly->options.engine.draft_sink, defaults.engine.draft_sink);
    EXPECT_EQ(explicitly->options.kv.memory_bytes, defaults.kv.memory_bytes);
    EXPECT_EQ(explicitly->options.kv.page_rows, defaults.kv.page_rows);
    EXPECT_EQ(explicitly->options.shared_memory.max_bytes_per_client,
              defaults.shared_memory.max_bytes_per_client);
    EXPECT_EQ(explicitly->options.shared_memory.max_segments_per_client,
              defaults.shared_memory.max_segments_per_client);
  }
}

TEST(FlagsTest, SizesOfARequestLogNeedOne) {
  for (const char* flag : {"--request-log-size=2MiB", "--request-log-files=2"}) {
    const auto parsed = ParseMore({flag});
    EXPECT_THAT(parsed, StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("there is no --request-log"));
  }
  EXPECT_THAT(ParseMore({"--request-log", "F", "--request-log-files", "2"}), IsOk());
  EXPECT_THAT(ParseMore({"--request-log", "F", "--request-log-files", "0"}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(FlagsTest, AProbeStartsNoServerAndIsNotConfusedByTheServersEnvironment) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--probe", "unix:/run/a"}, {"--probe=unix:/run/a"}}) {
    const auto parsed = Parse(words, {{"AERIE_MAX_K", "many"}});
    ASSERT_THAT(parsed, IsOk());
    ASSERT_TRUE(parsed->probe.has_value());
    EXPECT_EQ(parsed->probe->address, "unix:/run/a");
    EXPECT_EQ(parsed->probe->files.tls_cert, "");
  }
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--probe", "nowhere"},
                                                {"--probe", ""},
                                                {"--probe", "a:1", "--max-k", "3"},
                                                {"--max-k", "3", "--probe", "a:1"}}) {
    const auto parsed = Parse(words);
    EXPECT_THAT(parsed, StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("--probe"));
  }
  EXPECT_FALSE(ParseMore({})->probe.has_value());
}

TEST(FlagsTest, AProbeTakesTheFilesOfTheClientThatAsks) {
  const auto parsed = Parse({"--tls-ca", "A", "--probe", "a:1", "--tls-cert", "C", "--tls-key", "K",
                             "--tls-server-name", "N", "--token-file", "T"},
                            {{"AERIE_TLS_CLIENT_CA", "the server's"}});
  ASSERT_THAT(parsed, IsOk());
  ASSERT_TRUE(parsed->probe.has_value());
  const rpc::ChannelFiles& files = parsed->probe->files;
  EXPECT_EQ(files.tls_ca, "A");
  EXPECT_EQ(files.tls_cert, "C");
  EXPECT_EQ(files.tls_key, "K");
  EXPECT_EQ(files.tls_server_name, "N");
  EXPECT_EQ(files.token_file, "T");
}

TEST(FlagsTest, WhatIsOnlyForAProbeIsRefusedWithoutOne) {
  for (const char* flag : {"--tls-ca", "--tls-server-name"}) {
    const auto parsed = ParseMore({flag, "x"});
    EXPECT_THAT(parsed, StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(std::string(parsed.status().message()),
                HasSubstr(std::string(flag) + " is x but --probe is not given; expected"));
  }
}

TEST(FlagsTest, AFlagBeatsTheEnvironmentWhichBeatsTheDefaultAndEachSaysSo) {
  const auto parsed = ParseMore({"--max-k", "5"}, {{"AERIE_MAX_K", "6"}, {"AERIE_THREADS", "2"}});
  ASSERT_THAT(parsed, IsOk());
  EXPECT_EQ(parsed->options.engine.max_k, 5);
  EXPECT_EQ(parsed->options.compute.threads, 2);
  EXPECT_EQ(SettingOf(parsed->options, "max_k"), (Setting{"max_k", "5", "flag --max-k"}));
  EXPECT_EQ(SettingOf(parsed->options, "threads"),
            (Setting{"threads", "2", "environment AERIE_THREADS"}));
  EXPECT_EQ(SettingOf(parsed->options, "max_context"), (Setting{"max_context", "8192", "default"}));
  EXPECT_EQ(parsed->options.settings.size(), FlagTable().size());
}

TEST(FlagsTest, TheEnvironmentAloneIsEnough) {
  const auto parsed = Parse(
      {},
      {{"AERIE_DRAFTER", "d"}, {"AERIE_TARGET", "t"}, {"AERIE_LISTEN", "127.0.0.1:0,unix:/tmp/x"}});
  ASSERT_THAT(parsed, IsOk());
  EXPECT_THAT(parsed->options.grpc.listen, ElementsAre("127.0.0.1:0", "unix:/tmp/x"));
}

TEST(FlagsTest, HelpNamesEveryFlagWithItsDefaultAndVariable) {
  const auto parsed = Parse({"--help"});
  ASSERT_THAT(parsed, IsOk());
  ASSERT_TRUE(parsed->print.has_value());
  for (const Flag& flag : FlagTable()) {
    std::string shown = "--" + flag.name + " " + flag.value;
    if (!flag.default_text.empty()) shown += "=" + flag.default_text;
    EXPECT_THAT(*parsed->print, HasSubstr(shown));
  }
  EXPECT_THAT(*parsed->print, HasSubstr("AERIE_MAX_ROWS_PER_CALL"));
}

TEST(FlagsTest, HelpAndVersionNeedNoOtherFlag) {
  EXPECT_TRUE(Parse({"-h"})->print.has_value());
  const auto parsed = Parse({"--version"});
  ASSERT_THAT(parsed, IsOk());
  EXPECT_THAT(parsed->print.value_or(""), ::testing::StartsWith("aerie-server "));
}

struct BadLineCase {
  std::string name;
  std::vector<std::string> arguments;
  std::string message;
};

class BadLineTest : public ::testing::TestWithParam<BadLineCase> {};

TEST_P(BadLineTest, StopsWithFlagValueAndRemedy) {
  const absl::Status status = ParseMore(GetParam().arguments).status();
  EXPECT_THAT(status, Refuses(absl::StatusCode::kInvalidArgument, ""));
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BadLineTest,
    ::testing::ValuesIn(std::vector<BadLineCase>{
        {"UnknownFlag", {"--fast", "9"}, "\"--fast 9\" on the command line is not known"},
        {"StrayWord", {"serve"}, "\"serve\" on the command line is not known"},
        {"NoValue", {"--max-k"}, "--max-k"},
        {"NoNumber", {"--max-k", "many"}, "--max-k is \"many\"; expected a whole number"},
        {"TrailingText", {"--max-k", "4x"}, "--max-k is \"4x\""},
        {"TooLargeForInt32", {"--max-sessions", "2147483648"}, "--max-sessions is \"2147483648\""},
        {"OutOfRange", {"--max-k", "129"}, "--max-k is 129; expected 1..128"},
        {"Twice", {"--max-k", "3", "--max-k", "4"}, "--max-k is given 2 times (3, 4)"},
        {"DurationWithoutUnit", {"--session-lease", "10"}, "--session-lease is \"10\""},
        {"NoLease", {"--session-lease", "0s"}, "--session-lease is 0"},
        {"NoDrainTime", {"--drain-timeout", "0s"}, "--drain-timeout is 0"},
        {"EndlessDrain", {"--drain-timeout", "inf"}, "--drain-timeout is inf"},
        {"BytesOfAnotherUnit", {"--max-message-bytes", "64MB"}, "--max-message-bytes is \"64MB\""},
        {"BytesThatOverflow",
         {"--max-message-bytes", "9223372036854775807GiB"},
         "--max-message-bytes is \"9223372036854775807GiB\""},
        {"SmallMessage", {"--max-message-bytes", "1KiB"}, "--max-message-bytes is 1024"},
        {"Switch", {"--reflection", "yes"}, "--reflection is \"yes\"; expected on or off"},
        {"Convention",
         {"--layer-id-convention", "hf"},
         "--layer-id-convention is \"hf\"; expected input-of-layer"},
        {"Device", {"--device", "cuda:x"}, "--device is \"cuda:x\"; expected cpu, cuda or"},
        {"DType",
         {"--dtype", "int4"},
         "--dtype is \"int4\"; expected auto, float32, bfloat16, int8 or fp8"},
        {"Fp8OnTheCpu",
         {"--dtype", "fp8"},
         "--dtype is \"fp8\" but --device is \"cpu\", which has no products of fp8; expected auto"},
        {"Threads", {"--threads", "-1"}, "--threads is -1; expected 0..1024"},
        {"Listen", {"--listen", "nowhere"}, "--listen is \"nowhere\"; expected host:port"},
        {"NormBeforeResidual",
         {"--norm-before-residual", "true"},
         "--norm-before-residual is \"true\"; expected on or off"},
        {"NormOutput", {"--norm-output", ""}, "--norm-output is \"\"; expected on or off"},
        {"RopeThetaIsNoNumber", {"--rope-theta", "big"}, "--rope-theta is \"big\"; expected"},
        {"RopeThetaOfOne", {"--rope-theta", "1"}, "--rope-theta is 1; expected a finite base"},
        {"RopeThetaIsNaN", {"--rope-theta", "nan"}, "--rope-theta is nan; expected"},
        {"RopeThetaIsInfinite", {"--rope-theta", "inf"}, "--rope-theta is inf; expected"},
        {"KvMemoryIsNoNumber", {"--kv-memory", "lots"}, "--kv-memory is \"lots\""},
        {"KvMemoryIsNegative", {"--kv-memory", "-1GiB"}, "--kv-memory is \"-1GiB\""},
        {"TinyKvMemory", {"--kv-memory", "1023KiB"}, "--kv-memory is 1047552; expected 1048576"},
        {"NoPageRows", {"--kv-page-rows", "0"}, "--kv-page-rows is 0; expected 1..1024"},
        {"HugePages", {"--kv-page-rows", "1025"}, "--kv-page-rows is 1025; expected 1..1024"},
        {"NegativeWindow", {"--draft-window", "-1"}, "--draft-window is -1"},
        {"NegativeSink", {"--draft-window", "64", "--draft-sink", "-1"}, "--draft-sink is -1"},
        {"SinkWithoutAWindow",
         {"--draft-sink", "4"},
         "--draft-sink is 4 but --draft-window is 0; expected a window"},
        {"OneClientAboveAllSessions",
         {"--max-sessions-per-client", "9", "--max-sessions", "8"},
         "--max-sessions-per-client is 9 but --max-sessions is 8"},
        {"OneClientAboveTheQueue",
         {"--max-queued-per-client", "2000"},
         "--max-queued-per-client is 2000 but --max-queued is 1024"},
        {"NegativeClientSessions",
         {"--max-sessions-per-client", "-1"},
         "--max-sessions-per-client is -1"},
        {"NegativeClientQueue", {"--max-queued-per-client", "-1"}, "--max-queued-per-client is -1"},
        {"SharedMemoryThatIsOff",
         {"--max-shared-memory-per-client", "2MiB"},
         "--max-shared-memory-per-client is given but --shared-memory is off"},
        {"SharedSegmentsOfNoMemory",
         {"--shared-memory", "off", "--max-shared-segments-per-client", "2"},
         "--max-shared-segments-per-client is given but --shared-memory is off"},
        {"TinySharedMemory",
         {"--shared-memory", "--max-shared-memory-per-client", "1023KiB"},
         "--max-shared-memory-per-client is 1047552; expected 1048576"},
        {"NoSharedSegments",
         {"--shared-memory", "--max-shared-segments-per-client", "0"},
         "--max-shared-segments-per-client is 0; expected 1..1024"},
        {"WeightWithoutAName", {"--client-weight", "3"}, "--client-weight is \"3\"; expected a"},
        {"WeightWithoutANumber", {"--client-weight", "a="}, "--client-weight is \"a=\""},
        {"WeightOfZero", {"--client-weight", "a=0"}, "--client-weight"},
        {"WeightAbove1000", {"--client-weight", "a=1001"}, "--client-weight"},
        {"TwoWeightsOfAClient",
         {"--client-weight", "a=1", "--client-weight", "a=2"},
         "--client-weight names the client \"a\" twice"},
        {"BurstWithoutARate",
         {"--row-burst-per-client", "10"},
         "--row-burst-per-client is 10 but --max-rows-per-second-per-client is 0"},
        {"FewerBytesOfAClientThanAMessageHas",
         {"--max-bytes-in-flight-per-client", "1MiB"},
         "--max-bytes-in-flight-per-client is 1048576 but --max-message-bytes is 67108864"},
        {"QuotaWithoutAName",
         {"--target-quota", "3"},
         "--target-quota is \"3\"; expected a target's name, =, its sessions"},
        {"QuotaOfNobody", {"--target-quota", "=3"}, "--target-quota names no target"},
        {"QuotaWithoutANumber", {"--target-quota", "a="}, "--target-quota is \"a=\""},
        {"QuotaWithoutRows", {"--target-quota", "a=3:"}, "--target-quota is \"a=3:\""},
        {"QuotaOfNothing", {"--target-quota", "a=0:0"}, "--target-quota gives \"a\" 0 sessions"},
        {"TwoQuotasOfATarget",
         {"--target-quota", "a=1", "--target-quota", "a=2"},
         "--target-quota names the target \"a\" twice"},
        {"MetricsListen", {"--metrics-listen", "on"}, "--metrics-listen is \"on\""},
        {"AdminListen", {"--admin-listen", "on"}, "--admin-listen is \"on\""},
        {"WiringGuardOfAnotherMode",
         {"--wiring-guard", "on"},
         "--wiring-guard is \"on\"; expected off, alert or not-serving"},
        {"TinyRecording",
         {"--record", "r", "--record-limit", "1023KiB"},
         "--record-limit is 1047552; expected 1048576"},
        {"NoRecordedSessions",
         {"--record", "r", "--record-sessions", "0"},
         "--record-sessions is 0"},
        {"RecordLimitWithoutAFolder",
         {"--record-limit", "1GiB"},
         "--record-limit is given but --record is not"},
        {"RecordSessionsWithoutAFolder",
         {"--record-sessions", "16"},
         "--record-sessions is given but --record is not"},
        {"AdminListenWithoutPort", {"--admin-listen", "localhost:"}, "--admin-listen is"},
    }),
    [](const auto& test) { return test.param.name; });

TEST(FlagsTest, DrafterAndTargetMustBeThere) {
  EXPECT_THAT(std::string(Parse({"--target", "t"}).status().message()),
              HasSubstr("--drafter is missing"));
  EXPECT_THAT(std::string(Parse({"--drafter", "d"}).status().message()),
              HasSubstr("--target is missing"));
}

TEST(FlagsTest, ABadVariableIsRefusedLikeABadFlag) {
  EXPECT_THAT(std::string(ParseMore({}, {{"AERIE_MAX_K", "x"}}).status().message()),
              HasSubstr("--max-k is \"x\""));
}

}  // namespace
}  // namespace aerie
