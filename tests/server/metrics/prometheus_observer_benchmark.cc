// What counting costs the engine thread: run by hand,
// build/<preset>/bin/prometheus-observer-benchmark.
#include "benchmark/benchmark.h"
#include "prometheus/collectable.h"
#include "prometheus/text_serializer.h"
#include "server/metrics/metric_page.h"
#include "server/metrics/prometheus_observer.h"
#include "server/metrics/server_metrics.h"

namespace aerie {
namespace {

void OnRound(benchmark::State& state) {
  const auto k = static_cast<int32_t>(state.range(0));
  PrometheusObserver observer({.max_k = k});
  const RoundRecord record = {.queue_wait = absl::Microseconds(40),
                              .extend_time = absl::Milliseconds(2),
                              .step_time = absl::Milliseconds(6),
                              .total = absl::Milliseconds(9),
                              .rows = 3,
                              .bytes = 3 * 1728 * 2,
                              .proposed = k,
                              .committed_tokens = 3,
                              .judgement = Judgement{k, k, k / 2, k / 2},
                              .depth = k};
  for (auto _ : state) observer.OnRound(record);
}
BENCHMARK(OnRound)->Arg(5)->Arg(16)->Arg(128);

// All that is told of one decoding round of k tokens with a session of its own pass: the passes,
// the load of the moment before and after, the pages, the round, the answer and its RPC.
void WholeRound(benchmark::State& state) {
  const auto k = static_cast<int32_t>(state.range(0));
  PrometheusObserver observer({.max_k = k, .kv_pages = 1000});
  const RpcName name = {RpcType::kUnary, "aerie.v1.DraftService", "Draft"};
  const RoundRecord record = {.copy_in = absl::Microseconds(8),
                              .queue_wait = absl::Microseconds(40),
                              .extend_time = absl::Milliseconds(2),
                              .step_time = absl::Milliseconds(6),
                              .total = absl::Milliseconds(9),
                              .rows = 3,
                              .bytes = 3 * 1728 * 2,
                              .proposed = k,
                              .committed_tokens = 3,
                              .judgement = Judgement{k, k, k / 2, k / 2},
                              .depth = k,
                              .verify_time = absl::Milliseconds(30),
                              .chosen_k = k};
  ServerMetrics server({});
  for (auto _ : state) {
    server.OnStarted(name);
    server.OnMessageReceived(name, 11000);
    observer.OnLoad(1, 0);
    for (int32_t pass = 0; pass < k; ++pass) {
      observer.OnLoad(0, 1);
      observer.OnPass({.sessions = 1, .rows = 1, .duration = absl::Milliseconds(1)});
      observer.OnKvUsage({.pages_total = 1000, .pages_used = 10 + pass});
    }
    observer.OnRound(record);
    observer.OnLoad(0, 0);
    observer.OnReplyEncoded(absl::Microseconds(5));
    server.OnMessageSent(name, 200);
    server.OnAnswered(CallKind::kDraft, RpcType::kUnary, absl::StatusCode::kOk);
    server.OnHandled(name, absl::StatusCode::kOk, absl::Milliseconds(9));
  }
  // A round of this many passes cannot be quicker than this on any head worth serving: 1 ms a pass.
  state.counters["share_of_1ms_passes"] = benchmark::Counter(
      1e-3 * k, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(WholeRound)->Arg(5)->Arg(16)->Arg(128);

void OnRpc(benchmark::State& state) {
  ServerMetrics server({});
  const RpcName name = {RpcType::kUnary, "aerie.v1.DraftService", "GetServerInfo"};
  for (auto _ : state) {
    server.OnStarted(name);
    server.OnMessageReceived(name, 5000);
    server.OnMessageSent(name, 100);
    server.OnHandled(name, absl::StatusCode::kOk, absl::Milliseconds(9));
  }
}
BENCHMARK(OnRpc);

void Scrape(benchmark::State& state) {
  PrometheusObserver observer({.max_k = static_cast<int32_t>(state.range(0))});
  const ServerMetrics server({});
  MetricPage page(server.metrics());
  page.Add("demo", observer.metrics());
  size_t bytes = 0;
  for (auto _ : state) {
    bytes = prometheus::TextSerializer().Serialize(page.Collect()).size();
  }
  state.counters["page_bytes"] = static_cast<double>(bytes);
}
BENCHMARK(Scrape)->Arg(16)->Arg(128);

}  // namespace
}  // namespace aerie

BENCHMARK_MAIN();
