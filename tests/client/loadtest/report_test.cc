// What programs and people are told about a load test.
#include "client/loadtest/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_join.h"

#include "client/loadtest/load_test.h"
#include "tests/client/fake_draft_service.h"
#include "tests/client/test_server.h"

namespace aerie::loadtest {
namespace {

using ::testing::DoubleEq;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using Json = nlohmann::json;

class ReportTest : public ::testing::Test {
 protected:
  LoadOptions Options() {
    LoadOptions options;
    options.address = server_.address();
    options.transport = TransportKind::kStream;
    options.sessions = LoadProfile::Constant(4);
    options.requests = 10;
    options.rounds = 20;
    options.k = 4;
    options.prompt_rows = 30;
    options.deadline = absl::Seconds(60);
    return options;
  }
  Report Run(const LoadOptions& options) {
    auto test = LoadTest::Prepare(options);
    EXPECT_TRUE(test.ok()) << test.status();
    return (*test)->Run(nullptr);
  }

  FakeDraftService service_;
  TestServer server_{&service_};
};

// Every field by its path. Of lists the first entry stands for all.
void AddPaths(const Json& json, const std::string& path, std::set<std::string>* paths) {
  if (json.is_object() && !json.empty()) {
    for (const auto& [key, value] : json.items()) {
      AddPaths(value, path.empty() ? key : path + "." + key, paths);
    }
  } else if (json.is_array() && !json.empty() && json[0].is_object()) {
    AddPaths(json[0], path + "[]", paths);
  } else {
    paths->insert(path);
  }
}

std::set<std::string> KeptPaths(const std::string& name) {
  const char* const folder = std::getenv("AERIE_SOURCE_DIR");
  std::ifstream file(std::string(folder == nullptr ? "." : folder) + "/tests/client/loadtest/" +
                     name);
  EXPECT_TRUE(file.is_open()) << name;
  std::set<std::string> paths;
  for (std::string line; std::getline(file, line);) paths.insert(line);
  return paths;
}

TEST_F(ReportTest, HasExactlyTheFieldsOfItsSchemaVersion) {
  LoadOptions options = Options();
  options.slo = {*ParseSlo("p99=1h")};
  Report report = Run(options);
  report.reconciliation.done = true;
  report.reconciliation.checks = {{"a", 1, 2, 3}};
  report.result.whole.faults["cancel"] = {1, 1, {{"OK", 1}}, ""};
  const Json json = Json::parse(ToJson(report));
  EXPECT_EQ(json.at("schema_version"), 2);
  std::set<std::string> paths;
  AddPaths(json, "", &paths);
  // A field that is missing or renamed needs another schema version; a new one a line in
  // report_fields.txt and in docs/load.md.
  EXPECT_THAT(paths, ::testing::ContainerEq(KeptPaths("report_fields.txt")))
      << absl::StrJoin(paths, "\n");
}

TEST_F(ReportTest, TellsTheFiguresOfTheRun) {
  LoadOptions options = Options();
  options.accept = AcceptProcess::ByChance({1.0, 0.0});
  Report report = Run(options);
  report.arguments = {"--k", "4"};
  const Json json = Json::parse(ToJson(report));
  EXPECT_EQ(json.at("schema"), "aerie-load");
  EXPECT_EQ(json.at("kind"), "run");
  EXPECT_EQ(json.at("arguments"), Json({"--k", "4"}));
  EXPECT_GE(json.at("host").at("cpus").get<int>(), 1);
  EXPECT_GT(json.at("host").at("memory_bytes").get<int64_t>(), 0);
  EXPECT_EQ(json.at("server").at("drafter"), "fake");
  EXPECT_EQ(json.at("server").at("limits").at("max_rows_per_call"), 100);
  EXPECT_EQ(json.at("options").at("dtype"), "bfloat16");
  EXPECT_EQ(json.at("options").at("loop"), "closed");
  EXPECT_EQ(json.at("options").at("accept"), "1,0");
  EXPECT_EQ(json.at("options").at("transport"), "stream");
  EXPECT_EQ(json.at("whole_run").at("rounds"), 200);
  EXPECT_EQ(json.at("reconciliation").at("sessions").at("committed_tokens"), 420);
  for (const char* kind : {"round_from_intended", "round"}) {
    const Json& latency = json.at("latency_seconds").at(kind);
    EXPECT_GT(latency.at("count").get<int64_t>(), 0) << kind;
    double last = latency.at("min").get<double>();
    for (const char* quantile : {"p50", "p90", "p95", "p99", "p99_9", "max"}) {
      EXPECT_GE(latency.at(quantile).get<double>(), last) << kind << " " << quantile;
      last = latency.at(quantile).get<double>();
    }
  }
  EXPECT_THAT(json.at("server_seconds").at("total").at("p50").get<double>(), DoubleEq(70e-6));
  EXPECT_EQ(json.at("acceptance").at("mean_accept_length"), 2.0);
  EXPECT_EQ(json.at("acceptance").at("expected_by_position"), Json({1.0, 0.0, 0.0, 0.0}));
  EXPECT_GT(json.at("variety").at("distinct_trigrams_ratio").get<double>(), 0.9);
  EXPECT_EQ(json.at("errors").at("total"), 0);
  EXPECT_EQ(json.at("reconciliation").at("sessions").at("equal"), true);
  EXPECT_EQ(json.at("reconciliation").at("sessions").at("compared"), 10);
  EXPECT_GT(json.at("tester").at("cpu_seconds_per_round").get<double>(), 0.0);
  EXPECT_EQ(json.at("verdicts").at("exit_code"), 0);
}

TEST_F(ReportTest, JsonSaysWhatTheSessionsAskedFor) {
  LoadOptions options = Options();
  options.tree = TreeShape{.depth = 3, .top_k = 2, .total_tokens = 6};
  options.temperature = 0.5f;
  options.client = "blue";
  const Json json = Json::parse(ToJson(Run(options))).at("options");
  EXPECT_EQ(json.at("k"), 6);
  EXPECT_EQ(json.at("tree"), (Json{{"depth", 3}, {"top_k", 2}, {"total_tokens", 6}}));
  EXPECT_EQ(json.at("temperature"), 0.5);
  EXPECT_EQ(json.at("client"), "blue");
}

TEST_F(ReportTest, TellsPeopleTheSame) {
  LoadOptions options = Options();
  options.accept = AcceptProcess::ByChance({1.0, 0.0});
  const std::string table = ToTable(Run(options));
  EXPECT_THAT(table, HasSubstr("2.000 (bonus included)"));
  EXPECT_THAT(table, HasSubstr("10 finished, 0 failed"));
  EXPECT_THAT(table, HasSubstr("p99.9"));
  EXPECT_THAT(table, HasSubstr("counted the same in all 10 sessions"));
}

TEST_F(ReportTest, AnSloThatIsMissedEndsWithThreeAndErrorsWithOne) {
  LoadOptions options = Options();
  options.slo = {*ParseSlo("p50=1ns"), *ParseSlo("accept-length=1.0")};
  Report report = Run(options);
  const Verdicts missed = Judge(report);
  ASSERT_THAT(missed.slo, SizeIs(2));
  EXPECT_FALSE(missed.slo[0].met);
  EXPECT_TRUE(missed.slo[1].met);
  EXPECT_EQ(missed.exit_code, 3);
  report.result.whole.AddError(absl::InternalError("broken"));
  EXPECT_EQ(Judge(report).exit_code, 1) << "an error outweighs an SLO";
}

TEST(VerdictsTest, ABudgetForgivesAsManyFailedRoundsAsItSays) {
  Report report;
  report.options.error_budget = 0.01;
  report.result.whole.rounds = 99;
  report.result.whole.failed_rounds = 1;
  report.result.whole.AddError(absl::InternalError("broken"));
  EXPECT_EQ(Judge(report).exit_code, 0);
  report.result.whole.failed_rounds = 2;
  EXPECT_EQ(Judge(report).exit_code, 1);
}

TEST(VerdictsTest, AnSloOfLatencyIsMissedWithoutARound) {
  Report report;
  report.options.slo = {*ParseSlo("p99=1h")};
  EXPECT_EQ(Judge(report).exit_code, 3);
}

TEST(VerdictsTest, EachKindOfTestersLimitIsTold) {
  Report report;
  report.result.measured.round.Record(absl::Milliseconds(20));
  report.result.measured.wake_lag.Record(absl::Milliseconds(1));
  EXPECT_THAT(Judge(report).tester_limits, SizeIs(0)) << "a millisecond is no delay";
  report.result.measured.wake_lag.Record(absl::Milliseconds(3));
  report.result.tester_cpu_share = 0.9;
  EXPECT_THAT(Judge(report).tester_limits,
              ::testing::ElementsAre(HasSubstr("rounds were sent late"), HasSubstr("90 %")));
  report.result.tester_cpu_share = 0.2;
  report.result.machine_busy_share = 0.97;
  EXPECT_THAT(Judge(report).tester_limits,
              ::testing::ElementsAre(HasSubstr("rounds were sent late"),
                                     HasSubstr("of which the tester used 20 %")));
}

TEST_F(ReportTest, ThePageNeedsNothingElseAndShowsEveryPlot) {
  LoadOptions options = Options();
  options.accept = AcceptProcess::ByChance({1.0, 0.0});
  Report report = Run(options);
  report.arguments = {"--client", "<b>&\"blue\""};
  const std::string page = ToHtml(report);
  for (const char* title : {"Latency by percentile", "Acceptance by position", "Rounds over time",
                            "Latency over time", "&lt;b&gt;&amp;&quot;blue&quot;"}) {
    EXPECT_THAT(page, HasSubstr(title));
  }
  for (const char* outside : {"http://", "https://", "<script", "url(", "@import", "<b>&"}) {
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  }
  EXPECT_THAT(page, Not(HasSubstr("nan")));
}

TEST_F(ReportTest, TheTimelineAddsUpToTheRun) {
  LoadOptions options = Options();
  options.hdr_path = "asked for";
  const Report report = Run(options);
  int64_t rounds = 0;
  for (const Interval& interval : report.result.intervals) rounds += interval.rounds;
  EXPECT_EQ(rounds, 200);
  const std::string csv = ToCsv(report);
  const auto lines = static_cast<size_t>(std::count(csv.begin(), csv.end(), '\n'));
  EXPECT_EQ(lines, report.result.intervals.size() + 1);
  EXPECT_THAT(report.result.hdr_log, HasSubstr("Tag=round-from-intended,0.000,"));
}

TEST(LiveLineTest, ShowsRatesOfTheLastInterval) {
  Interval interval;
  interval.begin = absl::Seconds(10);
  interval.length = absl::Seconds(2);
  interval.asked = 24;
  interval.rounds = 10;
  interval.in_flight = 7;
  interval.p50 = absl::Milliseconds(8);
  interval.accept_length = 2;
  interval.tokens = 30;
  interval.errors = 3;
  const std::string line = ToLiveLine(interval);
  for (const char* part : {"12 s", "5.0 rounds/s of 12.0 asked", "15.0 tokens/s", "8.00 ms",
                           "7 in flight", "accept length 2.000", "errors 3"}) {
    EXPECT_THAT(line, HasSubstr(part));
  }
}

}  // namespace
}  // namespace aerie::loadtest
