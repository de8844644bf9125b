// What the engine tells, counted. PrometheusObserver hands its RoundObserver calls on to this.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "server/engine/round_observer.h"
#include "server/metrics/metric_registry.h"

namespace aerie {

// Thread rules are those of RoundObserver.
class RoundMetrics {
 public:
  // `registry` must outlive this.
  RoundMetrics(MetricRegistry& registry, const prometheus::Labels& common, int32_t max_k,
               int32_t max_sessions_per_pass);

  void OnRound(const RoundRecord& record);
  void OnPass(const PassRecord& record);
  void OnSessionOpened();
  void OnSessionEnded(const SessionRecord& record);
  void OnRejected(RejectReason reason);
  void OnReplyEncoded(absl::Duration copy_out);
  void OnLoad(int32_t queued, int32_t in_flight);
  void OnKvUsage(const KvUsage& usage);
  void OnEvicted(int64_t rows);

 private:
  void CountJudgement(const Judgement& judgement);

  prometheus::Counter& drafts_;
  prometheus::Counter& draft_tokens_;
  prometheus::Counter& accepted_tokens_;
  std::vector<prometheus::Counter*> draft_tokens_per_pos_;     // [max_k]
  std::vector<prometheus::Counter*> accepted_tokens_per_pos_;  // [max_k]
  prometheus::Counter& committed_tokens_;
  prometheus::Counter& report_mismatch_;
  CounterTable<UnreportedReason, kUnreportedReasons.size()> unreported_;
  CounterTable<SkipReason, kSkipReasons.size()> skipped_;
  CounterTable<RejectReason, kRejectReasons.size()> rejected_;
  CounterTable<SessionEnd, kSessionEnds.size()> sessions_ended_;
  // Of rows in messages, and of those in shared memory.
  std::array<prometheus::Counter*, 2> hidden_rows_, hidden_bytes_;
  AtomicHistogram& request_accept_length_;
  AtomicHistogram& request_acceptance_ratio_;
  AtomicHistogram& request_tokens_per_second_;
  HistogramFamily& durations_;  // above the children that it makes
  AtomicHistogram& copy_in_seconds_;
  AtomicHistogram& queue_seconds_;
  AtomicHistogram& extend_seconds_;
  AtomicHistogram& step_seconds_;
  AtomicHistogram& copy_out_seconds_;
  AtomicHistogram& total_seconds_;
  AtomicHistogram& verify_seconds_;
  AtomicHistogram& batch_sessions_;
  AtomicHistogram& draft_length_;
  AtomicHistogram& draft_depth_;
  AtomicHistogram& adaptive_k_;
  prometheus::Gauge& sessions_;
  prometheus::Gauge& queue_depth_;
  prometheus::Gauge& inflight_;
  MetricRegistry::GaugeFamily& kv_pages_;  // above the children that it makes
  prometheus::Gauge& free_kv_pages_;
  prometheus::Gauge& private_kv_pages_;
  prometheus::Gauge& shared_kv_pages_;
  prometheus::Counter& evictions_;
  prometheus::Counter& evicted_rows_;
};

}  // namespace aerie
