// What is counted for the server as a whole, and how drafters stand beside it on one page.
#include "server/metrics/server_metrics.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/metrics/metric_page.h"
#include "server/metrics/prometheus_observer.h"
#include "tests/server/metrics/exposition.h"

namespace aerie {
namespace {

class ServerMetricsTest : public testing::Test {
 protected:
  ServerMetricsTest() { page_.Add("demo", observer_.metrics()); }

  Exposition Scrape() const { return Exposition(page_); }

  ServerMetrics server_{{}};
  MetricPage page_{server_.metrics()};
  PrometheusObserver observer_{
      {.labels = {.drafter = "demo", .version = "0f3a", .target = "SmolLM2"}}};
};

TEST_F(ServerMetricsTest, CountsAnsweredRequestsByWhatTheyAskedForHowTheyCameAndCode) {
  server_.OnAnswered(CallKind::kDraft, RpcType::kUnary, absl::StatusCode::kOk);
  server_.OnAnswered(CallKind::kDraft, RpcType::kBidiStream, absl::StatusCode::kOk);
  server_.OnAnswered(CallKind::kDraft, RpcType::kBidiStream, absl::StatusCode::kNotFound);
  server_.OnAnswered(CallKind::kOpenSession, RpcType::kUnary, absl::StatusCode::kResourceExhausted);
  server_.OnAnswered(CallKind::kCloseSession, RpcType::kBidiStream, absl::StatusCode::kOk);
  const Exposition scrape = Scrape();
  const auto calls = [&scrape](const char* call, const char* type, const char* code) {
    return scrape.Sum("aerie_calls_total",
                      {{"call", call}, {"grpc_type", type}, {"grpc_code", code}});
  };
  EXPECT_EQ(calls("draft", "unary", "OK"), 1);
  EXPECT_EQ(calls("draft", "bidi_stream", "OK"), 1);
  EXPECT_EQ(calls("draft", "bidi_stream", "NotFound"), 1);
  EXPECT_EQ(calls("open_session", "unary", "ResourceExhausted"), 1);
  EXPECT_EQ(calls("close_session", "bidi_stream", "OK"), 1);
  EXPECT_EQ(scrape.Sum("aerie_calls_total"), 5);
}

TEST_F(ServerMetricsTest, CountsTheRecordsOfTheRequestLogAndThoseThatAreMissing) {
  server_.OnRecordWritten();
  server_.OnRecordWritten();
  server_.OnRecordLost(RecordLoss::kQueueFull);
  server_.OnTraceIgnored();
  const Exposition scrape = Scrape();
  EXPECT_EQ(scrape.Sum("aerie_request_log_records_total"), 2);
  EXPECT_EQ(scrape.Sum("aerie_request_log_dropped_total", {{"reason", "queue_full"}}), 1);
  EXPECT_EQ(scrape.Sum("aerie_request_log_dropped_total"), 1);
  EXPECT_EQ(scrape.Sum("aerie_traceparents_ignored_total"), 1);
}

TEST_F(ServerMetricsTest, ShowsDraftersBesideEachOtherAndForgetsThoseThatAreGone) {
  PrometheusObserver other({.labels = {.drafter = "other", .version = "1", .target = "t"}});
  page_.Add("other", other.metrics());
  observer_.OnSessionOpened();
  other.OnSessionOpened();
  other.OnSessionOpened();
  EXPECT_EQ(Scrape().Sum("aerie_sessions", {{"drafter", "demo"}}), 1);
  EXPECT_EQ(Scrape().Sum("aerie_sessions", {{"drafter", "other"}}), 2);
  // Loaded once more: the same labels, so the new one takes the place.
  PrometheusObserver again({.labels = {.drafter = "other", .version = "1", .target = "t"}});
  page_.Add("other", again.metrics());
  page_.Remove("other", other.metrics().get());
  EXPECT_EQ(Scrape().Sum("aerie_sessions", {{"drafter", "other"}}), 0);
  page_.Remove("other", again.metrics().get());
  EXPECT_EQ(Scrape().Count("aerie_sessions"), 1);
}

TEST_F(ServerMetricsTest, TellsWhatCameOfLoadingDrafters) {
  server_.OnDrafterKnown("demo");
  const Labels failed = {{"drafter", "demo"}, {"result", "failed"}};
  EXPECT_EQ(Scrape().Sum("aerie_drafter_reloads_total", failed), 0);
  EXPECT_EQ(Scrape().Sum("aerie_drafter_last_reload_successful", {{"drafter", "demo"}}), 1);
  server_.OnDrafterLoaded("demo", /*ok=*/false, absl::FromUnixSeconds(100));
  server_.OnDrafterLoaded("a slip", /*ok=*/false, absl::FromUnixSeconds(100));
  EXPECT_EQ(Scrape().Sum("aerie_drafter_reloads_total", failed), 1);
  EXPECT_EQ(Scrape().Sum("aerie_drafter_last_reload_successful"), 0);
  EXPECT_EQ(Scrape().Sum("aerie_drafter_last_reload_timestamp_seconds"), 100);
  EXPECT_EQ(Scrape().Sum("aerie_drafter_reloads_total", {{"drafter", ""}, {"result", "failed"}}),
            1);
  server_.OnDrafterLoaded("demo", /*ok=*/true, absl::FromUnixSeconds(200));
  EXPECT_EQ(Scrape().Sum("aerie_drafter_last_reload_successful", {{"drafter", "demo"}}), 1);
  EXPECT_EQ(Scrape().Sum("aerie_drafter_last_reload_timestamp_seconds"), 200);
  server_.OnDrafterGone("demo");
  EXPECT_EQ(Scrape().Count("aerie_drafter_last_reload_successful"), 0);
}

TEST_F(ServerMetricsTest, CountsRpcsByMethodTypeAndCode) {
  const RpcName draft = {RpcType::kUnary, "aerie.v1.DraftService", "Draft"};
  const RpcName stream = {RpcType::kBidiStream, "aerie.v1.DraftService", "DraftStream"};
  server_.OnStarted(draft);
  server_.OnStarted(draft);
  server_.OnStarted(stream);
  server_.OnMessageReceived(draft, 100);
  server_.OnMessageReceived(stream, 7);
  server_.OnMessageReceived(stream, 8);
  server_.OnMessageSent(stream, 30);
  server_.OnHandled(draft, absl::StatusCode::kOk, absl::Milliseconds(3));
  server_.OnHandled(draft, absl::StatusCode::kCancelled, absl::Milliseconds(5));

  const Exposition scrape = Scrape();
  const Labels of_draft = {
      {"grpc_type", "unary"}, {"grpc_service", "aerie.v1.DraftService"}, {"grpc_method", "Draft"}};
  const Labels of_stream = {{"grpc_type", "bidi_stream"},
                            {"grpc_service", "aerie.v1.DraftService"},
                            {"grpc_method", "DraftStream"}};
  EXPECT_EQ(scrape.Sum("grpc_server_started_total", of_draft), 2);
  EXPECT_EQ(scrape.Sum("grpc_server_started_total", of_stream), 1);
  EXPECT_EQ(scrape.Sum("grpc_server_started_total"), 3);
  EXPECT_EQ(scrape.Sum("grpc_server_msg_received_total", of_draft), 1);
  EXPECT_EQ(scrape.Sum("grpc_server_msg_received_total", of_stream), 2);
  EXPECT_EQ(scrape.Sum("grpc_server_msg_sent_total", of_stream), 1);
  EXPECT_EQ(scrape.Sum("aerie_rpc_received_bytes_total", of_draft), 100);
  EXPECT_EQ(scrape.Sum("aerie_rpc_received_bytes_total", of_stream), 15);
  EXPECT_EQ(scrape.Sum("aerie_rpc_sent_bytes_total", of_stream), 30);
  EXPECT_EQ(scrape.Sum("grpc_server_handled_total", {{"grpc_code", "OK"}}), 1);
  EXPECT_EQ(scrape.Sum("grpc_server_handled_total",
                       {{"grpc_code", "Canceled"}, {"grpc_method", "Draft"}}),
            1);
  EXPECT_EQ(scrape.Sum("grpc_server_handled_total"), 2);
  EXPECT_EQ(scrape.Sum("grpc_server_handling_seconds_count", of_draft), 2);
  EXPECT_NEAR(scrape.Sum("grpc_server_handling_seconds_sum", of_draft), 8e-3, 1e-12);
}

using ServerMetricsDeathTest = ServerMetricsTest;

TEST_F(ServerMetricsDeathTest, RefusesAMethodThatHasNoSeries) {
  EXPECT_DEATH(server_.OnStarted({RpcType::kUnary, "aerie.v1.DraftService", "Drift"}),
               "aerie.v1.DraftService/Drift");
}

}  // namespace
}  // namespace aerie
