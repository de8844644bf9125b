#include "server/metrics/prometheus_observer.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <latch>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/metrics/metric_page.h"
#include "server/metrics/server_metrics.h"
#include "server/metrics/target_metrics.h"
#include "tests/server/metrics/exposition.h"

namespace aerie {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr int32_t kMaxK = 4;

class PrometheusObserverTest : public testing::Test {
 protected:
  PrometheusObserverTest() { page_.Add("demo", observer_.metrics()); }

  Exposition Scrape() const { return Exposition(page_); }

  ServerMetrics server_{
      {.version = "0.1.0", .revision = "abc", .compiler = "GNU 12", .libtorch = "2.11.0"}};
  MetricPage page_{server_.metrics()};

  PrometheusObserver observer_{{
      .labels = {.drafter = "demo", .version = "0f3a", .target = "SmolLM2"},
      .drafter = {.wiring = "[2, 15, 27]",
                  .device = "cpu",
                  .dtype = "float32",
                  .draft_vocab_size = 8192,
                  .hidden_size = 576},
      .max_k = kMaxK,
  }};
};

TEST_F(PrometheusObserverTest, ShowsEverySeriesAtZeroBeforeTheFirstEvent) {
  const Exposition scrape = Scrape();
  for (const Sample& sample : scrape.samples()) {
    if (sample.name.rfind("process_", 0) == 0 || sample.name.ends_with("_info")) continue;
    EXPECT_EQ(sample.value, 0) << sample.name;
  }
  for (const char* name : {"aerie_spec_decode_num_drafts_total",
                           "aerie_spec_decode_num_draft_tokens_total",
                           "aerie_spec_decode_num_accepted_tokens_total",
                           "aerie_committed_tokens_total",
                           "aerie_accept_report_mismatch_total",
                           "aerie_request_accept_length_tokens_count",
                           "aerie_request_acceptance_ratio_count",
                           "aerie_request_tokens_per_second_count",
                           "aerie_batch_sessions_count",
                           "aerie_draft_length_tokens_count",
                           "aerie_sessions",
                           "aerie_queue_depth",
                           "aerie_inflight",
                           "aerie_draft_depth_levels_count",
                           "aerie_kv_page_bytes",
                           "aerie_kv_evictions_total",
                           "aerie_kv_evicted_rows_total",
                           "aerie_verify_duration_seconds_count",
                           "aerie_adaptive_k_tokens_count",
                           "aerie_traceparents_ignored_total",
                           "aerie_request_log_records_total"}) {
    EXPECT_EQ(scrape.Count(name), 1) << name;
  }
  const auto values = [&scrape](const char* name, const char* label) {
    return scrape.ValuesOf(name, label);
  };
  EXPECT_THAT(values("aerie_spec_decode_num_accepted_tokens_per_pos_total", "position"),
              UnorderedElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(values("aerie_spec_decode_num_draft_tokens_per_pos_total", "position"),
              UnorderedElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(values("aerie_drafts_unreported_total", "reason"),
              UnorderedElementsAre("closed", "lease", "rollback", "stream_closed", "shutdown"));
  EXPECT_THAT(values("aerie_drafts_skipped_total", "reason"),
              UnorderedElementsAre("not_asked", "context_limit", "deadline", "not_worthwhile"));
  EXPECT_THAT(values("aerie_rejected_total", "reason"),
              UnorderedElementsAre("queue_full", "deadline", "lease", "wiring", "shape", "quota",
                                   "kv_memory", "client_rows", "client_bytes", "target_quota"));
  EXPECT_THAT(values("aerie_kv_pages", "state"), UnorderedElementsAre("free", "private", "shared"));
  EXPECT_THAT(values("aerie_sessions_ended_total", "reason"),
              UnorderedElementsAre("closed", "lease", "stream_closed", "shutdown"));
  EXPECT_THAT(values("aerie_hidden_rows_total", "transport"),
              UnorderedElementsAre("inline", "shared_memory"));
  EXPECT_THAT(values("aerie_hidden_bytes_total", "transport"),
              UnorderedElementsAre("inline", "shared_memory"));
  EXPECT_THAT(values("aerie_draft_duration_seconds_count", "phase"),
              UnorderedElementsAre("copy_in", "queue", "extend", "step", "copy_out", "total"));
  EXPECT_EQ(scrape.Count("aerie_calls_total"), 2 * 3 * 17);
  EXPECT_THAT(values("aerie_request_log_dropped_total", "reason"),
              UnorderedElementsAre("queue_full", "write_failed"));
  EXPECT_EQ(scrape.Count("grpc_server_started_total"), 14);
  EXPECT_EQ(scrape.Count("grpc_server_handled_total"), 14 * 17);
  EXPECT_EQ(scrape.Count("grpc_server_handling_seconds_count"), 14);
}

TEST_F(PrometheusObserverTest, CountsJudgedDraftsTokensAndPositions) {
  observer_.OnRound({.proposed = 4, .depth = 4});  // made, and judged by nobody yet
  observer_.OnRound({.proposed = 3,
                     .judgement = Judgement{.proposed = 4, .depth = 4, .accepted = 2},
                     .depth = 3});
  observer_.OnRound({.judgement = Judgement{.proposed = 3, .depth = 3, .accepted = 3}});
  observer_.OnSessionEnded({.judgement = Judgement{.proposed = 2, .depth = 2, .accepted = 0}});

  const Exposition scrape = Scrape();
  EXPECT_EQ(scrape.Sum("aerie_spec_decode_num_drafts_total"), 3);
  EXPECT_EQ(scrape.Sum("aerie_spec_decode_num_draft_tokens_total"), 9);
  EXPECT_EQ(scrape.Sum("aerie_spec_decode_num_accepted_tokens_total"), 5);
  const int proposed[kMaxK] = {3, 3, 2, 1};
  const int accepted[kMaxK] = {2, 2, 1, 0};
  for (int i = 0; i < kMaxK; ++i) {
    const Labels position = {{"position", std::to_string(i)}};
    EXPECT_EQ(scrape.Sum("aerie_spec_decode_num_draft_tokens_per_pos_total", position),
              proposed[i]);
    EXPECT_EQ(scrape.Sum("aerie_spec_decode_num_accepted_tokens_per_pos_total", position),
              accepted[i]);
  }
  EXPECT_EQ(scrape.Sum("aerie_draft_length_tokens_count"), 2);
  EXPECT_EQ(scrape.Sum("aerie_draft_length_tokens_sum"), 7);
}

TEST_F(PrometheusObserverTest, CountsATreeByItsLevelsAndByAllItsTokens) {
  observer_.OnRound({.proposed = 4, .depth = 2});
  observer_.OnRound({.judgement = Judgement{.proposed = 4, .depth = 2, .accepted = 1}});
  observer_.OnRound({.judgement = Judgement{.proposed = 3, .depth = 3, .accepted = 3}});

  const Exposition scrape = Scrape();
  EXPECT_EQ(scrape.Sum("aerie_spec_decode_num_drafts_total"), 2);
  EXPECT_EQ(scrape.Sum("aerie_spec_decode_num_draft_tokens_total"), 7);
  EXPECT_EQ(scrape.Sum("aerie_spec_decode_num_accepted_tokens_total"), 4);
  const int reached[kMaxK] = {2, 2, 1, 0};
  const int accepted[kMaxK] = {2, 1, 1, 0};
  for (int i = 0; i < kMaxK; ++i) {
    const Labels position = {{"position", std::to_string(i)}};
    EXPECT_EQ(scrape.Sum("aerie_spec_decode_num_draft_tokens_per_pos_total", position), reached[i]);
    EXPECT_EQ(scrape.Sum("aerie_spec_decode_num_accepted_tokens_per_pos_total", position),
              accepted[i]);
  }
  EXPECT_EQ(scrape.Sum("aerie_draft_length_tokens_sum"), 4);
  EXPECT_EQ(scrape.Sum("aerie_draft_depth_levels_sum"), 2);
  EXPECT_EQ(scrape.Sum("aerie_draft_depth_levels_count"), 1);
}

TEST_F(PrometheusObserverTest, ShowsThePagesOfDraftKvByWhoUsesThem) {
  PrometheusObserver observer({.kv_pages = 100, .kv_page_bytes = 4096});
  const auto pages = [&observer](const char* state) {
    return Exposition(*observer.metrics()).Sum("aerie_kv_pages", {{"state", state}});
  };
  EXPECT_EQ(pages("free"), 100) << "before the first session";
  EXPECT_EQ(Exposition(*observer.metrics()).Sum("aerie_kv_page_bytes"), 4096);
  observer.OnKvUsage({.pages_total = 100, .pages_used = 30, .pages_shared = 7});
  EXPECT_EQ(pages("free"), 70);
  EXPECT_EQ(pages("private"), 23);
  EXPECT_EQ(pages("shared"), 7);
  observer.OnKvUsage({.pages_total = 100, .pages_used = 1, .pages_shared = 0});
  EXPECT_EQ(pages("free"), 99);
  EXPECT_EQ(pages("private"), 1);
  EXPECT_EQ(pages("shared"), 0);
}

TEST_F(PrometheusObserverTest, CountsEvictionsAndTheirRows) {
  observer_.OnEvicted(70);
  observer_.OnEvicted(5);
  EXPECT_EQ(Scrape().Sum("aerie_kv_evictions_total"), 2);
  EXPECT_EQ(Scrape().Sum("aerie_kv_evicted_rows_total"), 75);
}

TEST_F(PrometheusObserverTest, CountsAMismatchOnlyWhenTheWorkerReportedAnotherNumber) {
  observer_.OnRound({.judgement = Judgement{.proposed = 4, .depth = 4, .accepted = 2}});
  observer_.OnRound(
      {.judgement = Judgement{.proposed = 4, .depth = 4, .accepted = 2, .worker_accepted = 2}});
  EXPECT_EQ(Scrape().Sum("aerie_accept_report_mismatch_total"), 0);
  observer_.OnRound(
      {.judgement = Judgement{.proposed = 4, .depth = 4, .accepted = 2, .worker_accepted = 3}});
  observer_.OnRound(
      {.judgement = Judgement{.proposed = 4, .depth = 4, .accepted = 2, .worker_accepted = 0}});
  EXPECT_EQ(Scrape().Sum("aerie_accept_report_mismatch_total"), 2);
}

TEST_F(PrometheusObserverTest, CountsRowsBytesAndCommittedTokensOfCallsAndOfTheClosingOne) {
  observer_.OnRound({.rows = 7, .bytes = 700, .committed_tokens = 0});
  observer_.OnRound({.rows = 3, .bytes = 300, .committed_tokens = 3});
  observer_.OnRound({.rows = 2, .bytes = 30, .shared_memory = true});
  observer_.OnSessionEnded({.final_tokens = 2});
  const Exposition scrape = Scrape();
  EXPECT_EQ(scrape.Sum("aerie_hidden_rows_total", {{"transport", "inline"}}), 10);
  EXPECT_EQ(scrape.Sum("aerie_hidden_bytes_total", {{"transport", "inline"}}), 1000);
  EXPECT_EQ(scrape.Sum("aerie_hidden_rows_total", {{"transport", "shared_memory"}}), 2);
  EXPECT_EQ(scrape.Sum("aerie_hidden_bytes_total", {{"transport", "shared_memory"}}), 30);
  EXPECT_EQ(scrape.Sum("aerie_committed_tokens_total"), 5);
}

TEST_F(PrometheusObserverTest, CountsEachReasonUnderItsOwnName) {
  // Each a different number of times, so that no two can be swapped.
  for (int i = 0; i < 1; ++i) observer_.OnRound({.unreported = UnreportedReason::kClosed});
  for (int i = 0; i < 2; ++i) observer_.OnRound({.unreported = UnreportedReason::kLease});
  for (int i = 0; i < 3; ++i) observer_.OnRound({.unreported = UnreportedReason::kRollback});
  for (int i = 0; i < 4; ++i) {
    observer_.OnSessionEnded(
        {.end = SessionEnd::kStreamClosed, .unreported = UnreportedReason::kStreamClosed});
  }
  for (int i = 0; i < 5; ++i) {
    observer_.OnSessionEnded(
        {.end = SessionEnd::kShutdown, .unreported = UnreportedReason::kShutdown});
  }
  for (int i = 0; i < 6; ++i) observer_.OnSessionEnded({.end = SessionEnd::kClosed});
  for (int i = 0; i < 7; ++i) observer_.OnSessionEnded({.end = SessionEnd::kLease});
  for (int i = 0; i < 1; ++i) observer_.OnRound({.skipped = SkipReason::kNotAsked});
  for (int i = 0; i < 2; ++i) observer_.OnRound({.skipped = SkipReason::kContextLimit});
  for (int i = 0; i < 3; ++i) observer_.OnRound({.skipped = SkipReason::kDeadline});
  for (int i = 0; i < 4; ++i) observer_.OnRound({.skipped = SkipReason::kNotWorthwhile});
  for (int i = 0; i < 7; ++i) observer_.OnRejected(RejectReason::kKvMemory);
  for (int i = 0; i < 1; ++i) observer_.OnRejected(RejectReason::kQueueFull);
  for (int i = 0; i < 2; ++i) observer_.OnRejected(RejectReason::kDeadline);
  for (int i = 0; i < 3; ++i) observer_.OnRejected(RejectReason::kLease);
  for (int i = 0; i < 4; ++i) observer_.OnRejected(RejectReason::kWiring);
  for (int i = 0; i < 5; ++i) observer_.OnRejected(RejectReason::kShape);
  for (int i = 0; i < 6; ++i) observer_.OnRejected(RejectReason::kQuota);

  const Exposition scrape = Scrape();
  const auto expect = [&scrape](const std::string& name, const std::map<std::string, int>& counts) {
    for (const auto& [reason, count] : counts) {
      EXPECT_EQ(scrape.Sum(name, {{"reason", reason}}), count) << name << " " << reason;
    }
  };
  expect("aerie_drafts_unreported_total",
         {{"closed", 1}, {"lease", 2}, {"rollback", 3}, {"stream_closed", 4}, {"shutdown", 5}});
  expect("aerie_sessions_ended_total",
         {{"stream_closed", 4}, {"shutdown", 5}, {"closed", 6}, {"lease", 7}});
  expect("aerie_drafts_skipped_total",
         {{"not_asked", 1}, {"context_limit", 2}, {"deadline", 3}, {"not_worthwhile", 4}});
  expect("aerie_rejected_total", {{"queue_full", 1},
                                  {"deadline", 2},
                                  {"lease", 3},
                                  {"wiring", 4},
                                  {"shape", 5},
                                  {"quota", 6},
                                  {"kv_memory", 7}});
}

TEST_F(PrometheusObserverTest, ObservesThePhasesThatAServedCallWentThrough) {
  observer_.OnRound({.copy_in = absl::Microseconds(30),
                     .queue_wait = absl::Microseconds(20),
                     .extend_time = absl::Milliseconds(2),
                     .step_time = absl::Milliseconds(6),
                     .total = absl::Milliseconds(9),
                     .rows = 3,
                     .proposed = 4,
                     .depth = 4});
  observer_.OnReplyEncoded(absl::Microseconds(7));
  // A prompt chunk: rows and no draft.
  observer_.OnRound({.queue_wait = absl::Microseconds(20),
                     .extend_time = absl::Milliseconds(30),
                     .total = absl::Milliseconds(31),
                     .rows = 64});
  const Exposition scrape = Scrape();
  const auto phase = [&scrape](const char* suffix, const char* name) {
    return scrape.Sum(std::string("aerie_draft_duration_seconds") + suffix, {{"phase", name}});
  };
  EXPECT_EQ(phase("_count", "copy_in"), 2);
  EXPECT_EQ(phase("_count", "copy_out"), 1);
  EXPECT_NEAR(phase("_sum", "copy_in"), 30e-6, 1e-12);
  EXPECT_NEAR(phase("_sum", "copy_out"), 7e-6, 1e-12);
  EXPECT_EQ(phase("_count", "queue"), 2);
  EXPECT_EQ(phase("_count", "extend"), 2);
  EXPECT_EQ(phase("_count", "step"), 1);
  EXPECT_EQ(phase("_count", "total"), 2);
  EXPECT_NEAR(phase("_sum", "queue"), 40e-6, 1e-12);
  EXPECT_NEAR(phase("_sum", "extend"), 32e-3, 1e-12);
  EXPECT_NEAR(phase("_sum", "step"), 6e-3, 1e-12);
  EXPECT_NEAR(phase("_sum", "total"), 40e-3, 1e-12);
  const auto at_most = [&scrape](const char* le) {
    return scrape.Sum("aerie_draft_duration_seconds_bucket", {{"phase", "extend"}, {"le", le}});
  };
  EXPECT_EQ(at_most("0.0016"), 0);
  EXPECT_EQ(at_most("0.0025"), 1);
  EXPECT_EQ(at_most("0.025"), 1);
  EXPECT_EQ(at_most("0.04"), 2);
  EXPECT_EQ(at_most("+Inf"), 2);
}

TEST_F(PrometheusObserverTest, ObservesVerificationsThatWorkersReportButNoAbsurdOne) {
  observer_.OnRound({.verify_time = absl::Milliseconds(40)});
  observer_.OnRound({.verify_time = absl::Hours(24 * 365)});
  observer_.OnRound(
      {.outcome = absl::StatusCode::kDeadlineExceeded, .verify_time = absl::Seconds(1)});
  observer_.OnRound({});
  const Exposition scrape = Scrape();
  EXPECT_EQ(scrape.Sum("aerie_verify_duration_seconds_count"), 1);
  EXPECT_NEAR(scrape.Sum("aerie_verify_duration_seconds_sum"), 0.04, 1e-12);
}

TEST_F(PrometheusObserverTest, ObservesWhatAdaptiveKChoseNoneIncluded) {
  observer_.OnRound({.chosen_k = 0});
  observer_.OnRound({.chosen_k = 3});
  observer_.OnRound({.proposed = 4, .depth = 4});
  const Exposition scrape = Scrape();
  EXPECT_EQ(scrape.Sum("aerie_adaptive_k_tokens_count"), 2);
  EXPECT_EQ(scrape.Sum("aerie_adaptive_k_tokens_sum"), 3);
  EXPECT_EQ(scrape.Sum("aerie_adaptive_k_tokens_bucket", {{"le", "0"}}), 1);
}

TEST_F(PrometheusObserverTest, KeepsRefusedCallsOutOfTheDurations) {
  observer_.OnRound({.outcome = absl::StatusCode::kDeadlineExceeded,
                     .queue_wait = absl::Seconds(1),
                     .total = absl::Seconds(1)});
  EXPECT_EQ(Scrape().Sum("aerie_draft_duration_seconds_count"), 0);
}

TEST_F(PrometheusObserverTest, LetsNoSumShrinkWhenTheClockIsSetBack) {
  observer_.OnRound(
      {.copy_in = absl::Seconds(-1), .queue_wait = absl::Seconds(-5), .total = absl::Seconds(-3)});
  observer_.OnReplyEncoded(absl::Seconds(-1));
  server_.OnHandled({RpcType::kUnary, "aerie.v1.DraftService", "Draft"}, absl::StatusCode::kOk,
                    absl::Seconds(-3));
  const Exposition scrape = Scrape();
  EXPECT_EQ(scrape.Sum("aerie_draft_duration_seconds_sum"), 0);
  EXPECT_EQ(scrape.Sum("grpc_server_handling_seconds_sum"), 0);
  EXPECT_EQ(scrape.Sum("aerie_draft_duration_seconds_count"), 4);
}

TEST_F(PrometheusObserverTest, ObservesOneRequestWhenItsSessionEnds) {
  SessionRecord record;
  record.acceptance.Judge(4, 4);
  record.acceptance.Judge(4, 1);  // 2 drafts, 5 of 8 tokens
  record.acceptance.completion_tokens = 7;
  record.active = absl::Milliseconds(200);
  observer_.OnSessionEnded(record);

  const Exposition scrape = Scrape();
  EXPECT_EQ(scrape.Sum("aerie_request_accept_length_tokens_count"), 1);
  EXPECT_EQ(scrape.Sum("aerie_request_accept_length_tokens_sum"), 3.5);
  const auto length_at_most = [&scrape](const char* le) {
    return scrape.Sum("aerie_request_accept_length_tokens_bucket", {{"le", le}});
  };
  EXPECT_EQ(length_at_most("1"), 0);
  EXPECT_EQ(length_at_most("3.25"), 0);
  EXPECT_EQ(length_at_most("3.5"), 1);
  EXPECT_EQ(length_at_most("5"), 1);
  EXPECT_EQ(scrape.Sum("aerie_request_acceptance_ratio_sum"), 0.625);
  const auto ratio_at_most = [&scrape](const char* le) {
    return scrape.Sum("aerie_request_acceptance_ratio_bucket", {{"le", le}});
  };
  EXPECT_EQ(ratio_at_most("0.6"), 0);
  EXPECT_EQ(ratio_at_most("0.65"), 1);
  EXPECT_EQ(scrape.Sum("aerie_request_tokens_per_second_count"), 1);
  EXPECT_NEAR(scrape.Sum("aerie_request_tokens_per_second_sum"), 35, 1e-9);
}

TEST_F(PrometheusObserverTest, LeavesASessionWithoutAJudgedDraftOutOfTheRequestHistograms) {
  observer_.OnSessionEnded({.active = absl::Seconds(1), .unreported = UnreportedReason::kClosed});
  const Exposition scrape = Scrape();
  EXPECT_EQ(scrape.Sum("aerie_request_accept_length_tokens_count"), 0);
  EXPECT_EQ(scrape.Sum("aerie_request_acceptance_ratio_count"), 0);
  EXPECT_EQ(scrape.Sum("aerie_request_tokens_per_second_count"), 0);
}

TEST_F(PrometheusObserverTest, ShowsOpenSessionsAndTheLoadOfTheMoment) {
  for (int i = 0; i < 3; ++i) observer_.OnSessionOpened();
  observer_.OnSessionEnded({});
  observer_.OnLoad(9, 4);
  observer_.OnLoad(5, 2);
  observer_.OnPass({.sessions = 3, .rows = 12});
  const Exposition scrape = Scrape();
  EXPECT_EQ(scrape.Sum("aerie_sessions"), 2);
  EXPECT_EQ(scrape.Sum("aerie_queue_depth"), 5);
  EXPECT_EQ(scrape.Sum("aerie_inflight"), 2);
  EXPECT_EQ(scrape.Sum("aerie_batch_sessions_sum"), 3);
  EXPECT_EQ(scrape.Sum("aerie_batch_sessions_bucket", {{"le", "2"}}), 0);
  EXPECT_EQ(scrape.Sum("aerie_batch_sessions_bucket", {{"le", "3"}}), 1);
}

TEST_F(PrometheusObserverTest, SaysWhatIsLoadedAndWhatIsRunning) {
  const Exposition scrape = Scrape();
  EXPECT_EQ(scrape.Sum("aerie_build_info", {{"version", "0.1.0"},
                                            {"revision", "abc"},
                                            {"compiler", "GNU 12"},
                                            {"libtorch", "2.11.0"}}),
            1);
  EXPECT_EQ(scrape.Sum("aerie_drafter_info", {{"drafter", "demo"},
                                              {"version", "0f3a"},
                                              {"target", "SmolLM2"},
                                              {"wiring", "[2, 15, 27]"},
                                              {"device", "cpu"},
                                              {"dtype", "float32"},
                                              {"draft_vocab_size", "8192"},
                                              {"hidden_size", "576"}}),
            1);
}

TEST_F(PrometheusObserverTest, LabelsWhatIsOfADrafterWithItsNameVersionAndTarget) {
  const Exposition of_server(*server_.metrics());
  for (const Sample& sample : of_server.samples()) {
    EXPECT_FALSE(sample.labels.contains("version") && sample.labels.contains("drafter"))
        << sample.name;
  }
  const Exposition scrape(*observer_.metrics());
  for (const Sample& sample : scrape.samples()) {
    ASSERT_TRUE(sample.labels.contains("drafter")) << sample.name;
    EXPECT_EQ(sample.labels.at("drafter"), "demo") << sample.name;
    EXPECT_EQ(sample.labels.at("version"), "0f3a") << sample.name;
    EXPECT_EQ(sample.labels.at("target"), "SmolLM2") << sample.name;
  }
}

TEST_F(PrometheusObserverTest, HasAPageThatNamesEveryMetricAndNoOther) {
  const char* source = std::getenv("AERIE_SOURCE_DIR");
  ASSERT_NE(source, nullptr) << "run it with ctest, which tells where the sources are";
  std::ifstream file(std::string(source) + "/docs/metrics.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  // In the page's tables a name stands alone between backquotes.
  std::set<std::string> named;
  const std::regex name("`((?:aerie|grpc_server|process)_[a-z_]+)`");
  for (std::sregex_iterator it(page.begin(), page.end(), name), end; it != end; ++it) {
    named.insert((*it)[1]);
  }
  std::set<std::string> exported;
  // With a guard and its profile: then there is every series that can be.
  const PrometheusObserver observer(
      {.wiring = {
           .mode = "alert", .captures = 1, .expected_rms = {2.5}, .expected_accept_length = 1.5}});
  ServerMetrics server({});
  server.OnDrafterKnown("demo");
  MetricPage all(server.metrics());
  all.Add("demo", observer.metrics());
  all.Add("quotas", TargetMetrics([] { return std::vector<TargetUsage>(1); }));
  const Exposition scrape(all);
  for (const auto& [metric, help] : scrape.help()) exported.insert(metric);
  EXPECT_EQ(named, exported);
}

TEST_F(PrometheusObserverTest, TakesAnyTextAsALabel) {
  PrometheusObserver observer({.labels = {.target = "a \"b\" \\ c\nd {e=\"f\"}"}});
  EXPECT_EQ(Exposition(*observer.metrics())
                .Sum("aerie_sessions", {{"target", "a \"b\" \\ c\nd {e=\"f\"}"}}),
            0);
}

TEST_F(PrometheusObserverTest, StatesTheDefinitionsInItsHelpTexts) {
  const Exposition scrape = Scrape();
  for (const auto& [name, help] : scrape.help()) {
    EXPECT_GT(help.size(), 10u) << name;
    // The serializer writes HELP as it stands; either would break the page for every reader.
    EXPECT_EQ(help.find_first_of("\\\n"), std::string::npos) << name;
  }
  EXPECT_THAT(scrape.help().at("aerie_spec_decode_num_drafts_total"), HasSubstr("bonus included"));
  EXPECT_THAT(scrape.help().at("aerie_request_accept_length_tokens"), HasSubstr("bonus included"));
  EXPECT_THAT(scrape.help().at("aerie_spec_decode_num_accepted_tokens_total"),
              HasSubstr("bonus token not counted"));
  EXPECT_THAT(scrape.help().at("aerie_committed_tokens_total"),
              HasSubstr("accepted and bonus tokens"));
}

TEST_F(PrometheusObserverTest, LosesNoRejectionToldByManyThreads) {
  constexpr int kThreads = 4, kEach = 300000;
  std::latch start(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, &start] {
      start.arrive_and_wait();
      for (int j = 0; j < kEach; ++j) {
        observer_.OnRejected(j % 2 == 0 ? RejectReason::kQueueFull : RejectReason::kShape);
      }
    });
  }
  // A scrape amid the telling sees no torn number.
  EXPECT_LE(Scrape().Sum("aerie_rejected_total"), kThreads * kEach);
  for (std::thread& thread : threads) thread.join();
  const Exposition scrape = Scrape();
  EXPECT_EQ(scrape.Sum("aerie_rejected_total", {{"reason", "queue_full"}}), kThreads * kEach / 2);
  EXPECT_EQ(scrape.Sum("aerie_rejected_total", {{"reason", "shape"}}), kThreads * kEach / 2);
}

TEST_F(PrometheusObserverTest, OutlivesItsObserverInTheHandsOfTheExporter) {
  std::shared_ptr<prometheus::Collectable> metrics;
  {
    PrometheusObserver observer(PrometheusOptions{});
    observer.OnSessionOpened();
    metrics = observer.metrics();
  }
  EXPECT_EQ(Exposition(*metrics).Sum("aerie_sessions"), 1);
}

using PrometheusObserverDeathTest = PrometheusObserverTest;

TEST_F(PrometheusObserverDeathTest, RefusesJudgementsThatNoDraftCanHave) {
  EXPECT_DEATH(observer_.OnRound({.judgement = Judgement{.proposed = kMaxK + 1}}),
               "a draft of 5 tokens was judged");
  EXPECT_DEATH(observer_.OnRound({.judgement = Judgement{.proposed = 0}}),
               "a draft of 0 tokens was judged");
  EXPECT_DEATH(observer_.OnRound({.judgement = Judgement{.proposed = 2, .depth = 3}}),
               "2 tokens on 3 levels");
  EXPECT_DEATH(observer_.OnRound({.judgement = Judgement{.proposed = 2}}), "2 tokens on 0 levels");
  EXPECT_DEATH(
      observer_.OnRound({.judgement = Judgement{.proposed = 3, .depth = 2, .accepted = 3}}),
      "3 of 2 levels of a draft were accepted");
}

TEST_F(PrometheusObserverDeathTest, RefusesPagesThatDoNotAddUp) {
  EXPECT_DEATH(observer_.OnKvUsage({.pages_total = 4, .pages_used = 5}), "5 used of 4 pages");
  EXPECT_DEATH(observer_.OnKvUsage({.pages_total = 4, .pages_used = 1, .pages_shared = 2}),
               "2 shared of 1 used");
}

}  // namespace
}  // namespace aerie
