// What programs and people are told about a load test.
#include "client/loadtest/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/loadtest/load_test.h"
#include "tests/client/fake_draft_service.h"
#include "tests/client/test_server.h"

namespace aerie::loadtest {
namespace {

using ::testing::DoubleEq;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Json = nlohmann::json;

class ReportTest : public ::testing::Test {
 protected:
  LoadOptions Options() {
    LoadOptions options;
    options.address = server_.address();
    options.transport = TransportKind::kStream;
    options.sessions = 4;
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

TEST_F(ReportTest, WritesAReportOfTheDocumentedFields) {
  LoadOptions options = Options();
  options.accept = {1.0, 0.0};
  Report report = Run(options);
  report.arguments = {"--k", "4"};
  const Json json = Json::parse(ToJson(report));
  EXPECT_EQ(json.at("schema"), "aerie-load/1");
  for (const char* text : {"version", "revision", "compiler", "started_at"}) {
    EXPECT_TRUE(json.at(text).is_string()) << text;
  }
  EXPECT_EQ(json.at("arguments"), Json({"--k", "4"}));
  EXPECT_TRUE(json.at("host").at("system").is_string());
  EXPECT_GE(json.at("host").at("cpus").get<int>(), 1);
  EXPECT_GT(json.at("host").at("memory_bytes").get<int64_t>(), 0);
  EXPECT_EQ(json.at("server").at("drafter"), "fake");
  EXPECT_EQ(json.at("server").at("limits").at("max_rows_per_call"), 100);
  EXPECT_EQ(json.at("options").at("dtype"), "bfloat16");
  EXPECT_EQ(json.at("options").at("duration_seconds"), Json());
  EXPECT_EQ(json.at("options").at("transport"), "stream");
  EXPECT_EQ(json.at("options").at("k"), 4);
  EXPECT_EQ(json.at("options").at("tree"), Json());
  EXPECT_EQ(json.at("options").at("temperature"), 0.0);
  EXPECT_EQ(json.at("options").at("adaptive_k"), false);
  EXPECT_EQ(json.at("options").at("verify_seconds"), Json());
  EXPECT_EQ(json.at("options").at("client"), "");
  EXPECT_EQ(json.at("measured").at("rounds"), 200);
  EXPECT_EQ(json.at("measured").at("committed_tokens"), 420);
  EXPECT_GT(json.at("measured").at("rounds_per_second").get<double>(), 0.0);
  for (const char* kind : {"round", "prompt", "open", "close"}) {
    const Json& latency = json.at("latency_seconds").at(kind);
    EXPECT_GT(latency.at("count").get<int64_t>(), 0) << kind;
    double last = latency.at("min").get<double>();
    for (const char* quantile : {"p50", "p90", "p95", "p99", "p99_9", "max"}) {
      EXPECT_GE(latency.at(quantile).get<double>(), last) << kind << " " << quantile;
      last = latency.at(quantile).get<double>();
    }
    EXPECT_TRUE(latency.at("mean").is_number() && latency.at("stddev").is_number());
  }
  EXPECT_THAT(json.at("server_seconds").at("total").at("p50").get<double>(), DoubleEq(70e-6));
  for (const char* phase : {"queue", "extend", "step"}) {
    EXPECT_EQ(json.at("server_seconds").at(phase).at("count"), 200) << phase;
  }
  EXPECT_EQ(json.at("acceptance").at("mean_accept_length"), 2.0);
  EXPECT_EQ(json.at("acceptance").at("bonus_included"), true);
  EXPECT_THAT(json.at("acceptance").at("by_position"), SizeIs(4));
  EXPECT_GT(json.at("variety").at("distinct_trigrams_ratio").get<double>(), 0.9);
  EXPECT_EQ(json.at("errors").at("total"), 0);
  EXPECT_TRUE(json.at("errors").at("by_code").empty());
  EXPECT_EQ(json.at("reconciliation").at("equal"), true);
  EXPECT_EQ(json.at("reconciliation").at("sessions"), 10);
  EXPECT_TRUE(json.at("tester").at("cpu_share").is_number());
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
  options.accept = {1.0, 0.0};
  const std::string table = ToTable(Run(options));
  EXPECT_THAT(table, HasSubstr("2.000 (bonus included)"));
  EXPECT_THAT(table, HasSubstr("rounds           200,"));
  EXPECT_THAT(table, HasSubstr("tokens           420,"));
  EXPECT_THAT(table, HasSubstr("p99.9"));
  EXPECT_THAT(table, HasSubstr("counted the same in all 10 sessions"));
}

TEST(LiveLineTest, ShowsRatesOfTheLastInterval) {
  LiveSample sample;
  sample.since_start = absl::Seconds(12);
  sample.interval = absl::Seconds(2);
  for (int i = 0; i < 10; ++i) sample.rounds.Record(absl::Milliseconds(8));
  sample.acceptance.Add(4, 1);
  sample.tokens = 30;
  sample.errors = 3;
  const std::string line = ToLiveLine(sample);
  for (const char* part :
       {"12 s", "5.0 rounds/s", "15.0 tokens/s", "8.00 ms", "accept length 2.000", "errors 3"}) {
    EXPECT_THAT(line, HasSubstr(part));
  }
}

}  // namespace
}  // namespace aerie::loadtest
