// Whole load tests against a small server.
#include "client/loadtest/load_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>

#include "common/error_detail.h"
#include "tests/client/fake_draft_service.h"

namespace aerie::loadtest {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Json = nlohmann::json;

class LoadTestTest : public ::testing::TestWithParam<TransportKind> {
 protected:
  LoadOptions Options() {
    LoadOptions options;
    options.address = server_.address();
    options.transport = GetParam();
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

INSTANTIATE_TEST_SUITE_P(Transports, LoadTestTest,
                         ::testing::Values(TransportKind::kUnary, TransportKind::kStream),
                         [](const auto& test) {
                           return test.param == TransportKind::kUnary ? "Unary" : "Stream";
                         });

TEST_P(LoadTestTest, FindsExactlyTheAcceptLengthOfACertainProcess) {
  LoadOptions options = Options();
  options.accept = {1.0, 1.0, 0.0};
  const Report report = Run(options);
  const MeasuredStats& m = report.result.measured;
  EXPECT_THAT(m.acceptance.MeanAcceptLength(), DoubleEq(3.0));
  EXPECT_THAT(m.acceptance.RateByPosition(), ElementsAre(1.0, 1.0, 0.0, 0.0));
  // A prompt's call drafts too, so a session of 20 rounds makes 21 proposals.
  EXPECT_EQ(m.acceptance.drafts(), 10 * 21);
  EXPECT_EQ(m.rounds, 10 * 20);
  EXPECT_EQ(m.round.count(), 10 * 20);
  EXPECT_EQ(m.prompt.count(), 10);
  EXPECT_EQ(m.committed_tokens, 10 * 21 * 3);
  EXPECT_EQ(m.sent_rows, 10 * (30 + 20 * 3));
  EXPECT_EQ(m.sessions_finished, 10);
  EXPECT_EQ(ExitCode(report.result), 0);
  EXPECT_THAT(service_.Sessions(), IsEmpty());
}

TEST_P(LoadTestTest, AgreesWithTheServerToTheUnitWhateverIsAccepted) {
  LoadOptions options = Options();
  options.accept = {0.8, 0.5};
  const Report report = Run(options);
  const WholeStats& whole = report.result.whole;
  EXPECT_EQ(whole.sessions_compared, 10);
  EXPECT_THAT(whole.differences, IsEmpty());
  EXPECT_EQ(whole.acceptance.drafts(), 210);
  EXPECT_EQ(whole.committed_tokens, 210 + whole.acceptance.accepted_tokens());
  EXPECT_EQ(whole.acceptance, report.result.measured.acceptance);
  EXPECT_EQ(ExitCode(report.result), 0);
}

TEST_P(LoadTestTest, TheSameSeedGivesTheSameSessionsHoweverTheyAreScheduled) {
  LoadOptions options = Options();
  options.accept = {0.6};
  const Report wide = Run(options);
  options.sessions = 1;
  const Report narrow = Run(options);
  EXPECT_EQ(wide.result.whole.acceptance, narrow.result.whole.acceptance);
  options.seed = 2;
  EXPECT_FALSE(Run(options).result.whole.acceptance == narrow.result.whole.acceptance);
}

TEST_P(LoadTestTest, ReportsAServerThatCountsDifferently) {
  service_.bend_record = [](AcceptanceRecord* record) { ++record->accepted_draft_tokens; };
  LoadOptions options = Options();
  options.accept = {1.0, 0.0};
  const Report report = Run(options);
  EXPECT_EQ(report.result.whole.difference_count, 10);
  ASSERT_THAT(report.result.whole.differences, SizeIs(10));
  EXPECT_THAT(report.result.whole.differences[0],
              HasSubstr("accepted draft tokens: the session counted 21, the server 22"));
  EXPECT_EQ(ExitCode(report.result), 1);
  EXPECT_THAT(ToTable(report), HasSubstr("10 differences"));
}

TEST_P(LoadTestTest, CountsASessionWithAnErrorApart) {
  std::atomic<int> calls{0};
  service_.after_draft = [&](const v1::DraftRequest&) {
    return ++calls == 5 ? WithReason(absl::InternalError("broken"), "BROKEN") : absl::OkStatus();
  };
  LoadOptions options = Options();
  options.requests = 1;
  const Report report = Run(options);
  EXPECT_EQ(report.result.whole.errors.at("INTERNAL"), 1);
  EXPECT_THAT(report.result.whole.first_error, HasSubstr("broken"));
  EXPECT_EQ(report.result.measured.sessions_failed, 1);
  EXPECT_EQ(report.result.whole.sessions_compared, 0);  // its record cannot be compared
  EXPECT_EQ(ExitCode(report.result), 1);
}

TEST_P(LoadTestTest, GoesOnByItselfWhenTheServerForgetsItsSessions) {
  std::atomic<int> calls{0};
  service_.before_draft = [&](const v1::DraftRequest&) {
    if (++calls == 7) service_.ForgetSessions();
    return absl::OkStatus();
  };
  LoadOptions options = Options();
  options.requests = 1;
  options.accept = {1.0, 0.0};
  const Report report = Run(options);
  EXPECT_EQ(report.result.measured.resyncs, 1);
  EXPECT_EQ(report.result.measured.rounds, 20);
  EXPECT_EQ(report.result.whole.error_count(), 0);
}

TEST_P(LoadTestTest, EndsASessionAtTheServersContextAndStillAgreesWithIt) {
  service_.limits.set_max_context(60);
  LoadOptions options = Options();
  options.accept = {1.0, 0.0};
  const Report report = Run(options);
  EXPECT_EQ(report.result.measured.sessions_at_context_limit, 10);
  EXPECT_EQ(report.result.whole.error_count(), 0);
  EXPECT_THAT(report.result.whole.differences, IsEmpty());
  EXPECT_THAT(report.result.measured.acceptance.MeanAcceptLength(), DoubleEq(2.0));
}

TEST_P(LoadTestTest, RunsForADurationAndLeavesTheWarmUpOut) {
  LoadOptions options = Options();
  options.requests.reset();
  options.duration = absl::Milliseconds(300);
  options.warmup = absl::Milliseconds(100);
  const Report report = Run(options);
  EXPECT_EQ(report.result.seconds, absl::Milliseconds(200));
  // What was measured is part of the whole, and the warm-up is not in it.
  EXPECT_LT(report.result.measured.acceptance.drafts(), report.result.whole.acceptance.drafts());
  EXPECT_THAT(report.result.whole.differences, IsEmpty());
  EXPECT_EQ(ExitCode(report.result), 0);
}

TEST_P(LoadTestTest, StopsWhenAskedTo) {
  std::atomic<LoadTest*> running{nullptr};
  std::atomic<int> calls{0};
  service_.before_draft = [&](const v1::DraftRequest&) {
    if (++calls == 10) running.load()->Stop();
    return absl::OkStatus();
  };
  LoadOptions options = Options();
  options.sessions = 1;
  options.requests = 1'000'000;
  auto test = LoadTest::Prepare(options);
  ASSERT_TRUE(test.ok()) << test.status();
  running = test->get();
  const Report report = (*test)->Run(nullptr);
  EXPECT_EQ(report.result.measured.rounds, 9);
  EXPECT_EQ(report.result.whole.sessions_compared, 1);
}

TEST_P(LoadTestTest, RefusesAKThatTheServerDoesNotDraft) {
  LoadOptions options = Options();
  options.k = 9;
  const auto test = LoadTest::Prepare(options);
  EXPECT_EQ(test.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(test.status().message()), HasSubstr("--k is 9"));
}

TEST_P(LoadTestTest, WritesAReportOfTheDocumentedFields) {
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
  EXPECT_EQ(json.at("options").at("transport"),
            GetParam() == TransportKind::kStream ? "stream" : "unary");
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

TEST_P(LoadTestTest, TellsPeopleTheSame) {
  LoadOptions options = Options();
  options.accept = {1.0, 0.0};
  const std::string table = ToTable(Run(options));
  EXPECT_THAT(table, HasSubstr("2.000 (bonus included)"));
  EXPECT_THAT(table, HasSubstr("rounds           200,"));
  EXPECT_THAT(table, HasSubstr("tokens           420,"));
  EXPECT_THAT(table, HasSubstr("p99.9"));
  EXPECT_THAT(table, HasSubstr("counted the same in all 10 sessions"));
}

TEST(LoadTestConnectionTest, SaysThatThereIsNoServer) {
  LoadOptions options;
  options.address = "unix:/nonexistent/socket";
  options.deadline = absl::Milliseconds(200);
  EXPECT_FALSE(LoadTest::Prepare(options).ok());
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
  for (const char* part : {"12 s", "5.0 rounds/s", "15.0 tokens/s", "8.00 ms",
                           "accept length 2.000", "errors 3"}) {
    EXPECT_THAT(line, HasSubstr(part));
  }
}

}  // namespace
}  // namespace aerie::loadtest
