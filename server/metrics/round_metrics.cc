#include "server/metrics/round_metrics.h"

#include <algorithm>
#include <string>

#include "absl/time/time.h"
#include "server/metrics/buckets.h"

namespace aerie {
namespace {

std::vector<prometheus::Counter*> AddPositions(MetricRegistry::CounterFamily& family,
                                               int32_t max_k) {
  std::vector<prometheus::Counter*> counters;
  for (int32_t position = 0; position < max_k; ++position) {
    counters.push_back(&family.Add({{"position", std::to_string(position)}}));
  }
  return counters;
}

std::array<prometheus::Counter*, 2> AddTransports(MetricRegistry::CounterFamily& family) {
  return {&family.Add({{"transport", "inline"}}), &family.Add({{"transport", "shared_memory"}})};
}

// What a worker says may be anything; one absurd value would spoil the sum for the life of the
// process.
constexpr absl::Duration kLongestVerify = absl::Hours(1);

// A clock that was set back must not make a sum shrink.
double Seconds(absl::Duration duration) {
  return absl::ToDoubleSeconds(std::max(duration, absl::ZeroDuration()));
}

}  // namespace

RoundMetrics::RoundMetrics(MetricRegistry& registry, const prometheus::Labels& common,
                           int32_t max_k, int32_t max_sessions_per_pass)
    : drafts_(registry.AddCounter(kNumDrafts, common)),
      draft_tokens_(registry.AddCounter(kNumDraftTokens, common)),
      accepted_tokens_(registry.AddCounter(kNumAcceptedTokens, common)),
      draft_tokens_per_pos_(
          AddPositions(registry.AddCounters(kNumDraftTokensPerPos, common), max_k)),
      accepted_tokens_per_pos_(
          AddPositions(registry.AddCounters(kNumAcceptedTokensPerPos, common), max_k)),
      committed_tokens_(registry.AddCounter(kCommittedTokens, common)),
      report_mismatch_(registry.AddCounter(kAcceptReportMismatch, common)),
      unreported_(registry.AddCounters(kDraftsUnreported, common), "reason", kUnreportedReasons),
      skipped_(registry.AddCounters(kDraftsSkipped, common), "reason", kSkipReasons),
      rejected_(registry.AddCounters(kRejected, common), "reason", kRejectReasons),
      sessions_ended_(registry.AddCounters(kSessionsEnded, common), "reason", kSessionEnds),
      hidden_rows_(AddTransports(registry.AddCounters(kHiddenRows, common))),
      hidden_bytes_(AddTransports(registry.AddCounters(kHiddenBytes, common))),
      request_accept_length_(
          registry.AddHistograms(kRequestAcceptLength, common, AcceptLengthBuckets(max_k)).Add({})),
      request_acceptance_ratio_(
          registry.AddHistograms(kRequestAcceptanceRatio, common, RatioBuckets()).Add({})),
      request_tokens_per_second_(
          registry.AddHistograms(kRequestTokensPerSecond, common, TokensPerSecondBuckets())
              .Add({})),
      durations_(registry.AddHistograms(kDraftDuration, common, DraftDurationBuckets())),
      copy_in_seconds_(durations_.Add({{"phase", "copy_in"}})),
      queue_seconds_(durations_.Add({{"phase", "queue"}})),
      extend_seconds_(durations_.Add({{"phase", "extend"}})),
      step_seconds_(durations_.Add({{"phase", "step"}})),
      copy_out_seconds_(durations_.Add({{"phase", "copy_out"}})),
      total_seconds_(durations_.Add({{"phase", "total"}})),
      verify_seconds_(
          registry.AddHistograms(kVerifyDuration, common, DraftDurationBuckets()).Add({})),
      batch_sessions_(
          registry.AddHistograms(kBatchSessions, common, CountBuckets(max_sessions_per_pass))
              .Add({})),
      draft_length_(registry.AddHistograms(kDraftLength, common, CountBuckets(max_k)).Add({})),
      draft_depth_(registry.AddHistograms(kDraftDepth, common, CountBuckets(max_k)).Add({})),
      adaptive_k_(registry.AddHistograms(kAdaptiveK, common, CountBucketsFromZero(max_k)).Add({})),
      sessions_(registry.AddGauge(kSessions, common)),
      queue_depth_(registry.AddGauge(kQueueDepth, common)),
      inflight_(registry.AddGauge(kInflight, common)),
      kv_pages_(registry.AddGauges(kKvPages, common)),
      free_kv_pages_(kv_pages_.Add({{"state", "free"}})),
      private_kv_pages_(kv_pages_.Add({{"state", "private"}})),
      shared_kv_pages_(kv_pages_.Add({{"state", "shared"}})),
      evictions_(registry.AddCounter(kKvEvictions, common)),
      evicted_rows_(registry.AddCounter(kKvEvictedRows, common)) {}

void RoundMetrics::CountJudgement(const Judgement& judgement) {
  const auto [proposed, depth, accepted, worker_accepted] = judgement;
  AERIE_CHECK(proposed >= 1 && proposed <= static_cast<int32_t>(draft_tokens_per_pos_.size()))
      << "a draft of " << proposed << " tokens was judged";
  AERIE_CHECK(depth >= 1 && depth <= proposed)
      << "a draft of " << proposed << " tokens on " << depth << " levels was judged";
  AERIE_CHECK(accepted >= 0 && accepted <= depth)
      << accepted << " of " << depth << " levels of a draft were accepted";
  drafts_.Increment();
  draft_tokens_.Increment(proposed);
  accepted_tokens_.Increment(accepted);
  for (int32_t i = 0; i < depth; ++i) draft_tokens_per_pos_[i]->Increment();
  for (int32_t i = 0; i < accepted; ++i) accepted_tokens_per_pos_[i]->Increment();
  if (worker_accepted.has_value() && *worker_accepted != accepted) report_mismatch_.Increment();
}

void RoundMetrics::OnRound(const RoundRecord& record) {
  if (record.judgement) CountJudgement(*record.judgement);
  if (record.unreported) unreported_.Increment(*record.unreported);
  if (record.skipped) skipped_.Increment(*record.skipped);
  if (record.committed_tokens > 0) {
    committed_tokens_.Increment(static_cast<double>(record.committed_tokens));
  }
  if (record.rows > 0) {
    const size_t transport = record.shared_memory ? 1 : 0;
    hidden_rows_[transport]->Increment(static_cast<double>(record.rows));
    hidden_bytes_[transport]->Increment(static_cast<double>(record.bytes));
  }
  if (record.proposed > 0) {
    draft_length_.Observe(record.proposed);
    draft_depth_.Observe(record.depth);
  }
  // Refusals answer at once; among the durations they would make an overloaded server look fast.
  if (record.outcome != absl::StatusCode::kOk) return;
  if (record.verify_time && *record.verify_time <= kLongestVerify) {
    verify_seconds_.Observe(Seconds(*record.verify_time));
  }
  if (record.chosen_k) adaptive_k_.Observe(*record.chosen_k);
  copy_in_seconds_.Observe(Seconds(record.copy_in));
  queue_seconds_.Observe(Seconds(record.queue_wait));
  total_seconds_.Observe(Seconds(record.total));
  // A phase that a call did not go through is not a phase that took no time.
  if (record.rows > 0) extend_seconds_.Observe(Seconds(record.extend_time));
  const bool stepped = record.proposed > 1 || record.step_time > absl::ZeroDuration();
  if (stepped) step_seconds_.Observe(Seconds(record.step_time));
}

void RoundMetrics::OnPass(const PassRecord& record) { batch_sessions_.Observe(record.sessions); }

void RoundMetrics::OnSessionOpened() { sessions_.Increment(); }

void RoundMetrics::OnSessionEnded(const SessionRecord& record) {
  sessions_.Decrement();
  sessions_ended_.Increment(record.end);
  if (record.judgement) CountJudgement(*record.judgement);
  if (record.unreported) unreported_.Increment(*record.unreported);
  if (record.final_tokens > 0) {
    committed_tokens_.Increment(static_cast<double>(record.final_tokens));
  }
  const AcceptanceRecord& acceptance = record.acceptance;
  if (acceptance.spec_steps == 0) return;  // its ratios are not defined
  request_accept_length_.Observe(acceptance.MeanAcceptLength());
  request_acceptance_ratio_.Observe(acceptance.AcceptanceRate());
  if (record.active > absl::ZeroDuration()) {
    request_tokens_per_second_.Observe(static_cast<double>(acceptance.completion_tokens) /
                                       absl::ToDoubleSeconds(record.active));
  }
}

void RoundMetrics::OnRejected(RejectReason reason) { rejected_.Increment(reason); }

void RoundMetrics::OnReplyEncoded(absl::Duration copy_out) {
  copy_out_seconds_.Observe(Seconds(copy_out));
}

void RoundMetrics::OnLoad(int32_t queued, int32_t in_flight) {
  queue_depth_.Set(queued);
  inflight_.Set(in_flight);
}

void RoundMetrics::OnKvUsage(const KvUsage& usage) {
  AERIE_CHECK(0 <= usage.pages_shared && usage.pages_shared <= usage.pages_used &&
              usage.pages_used <= usage.pages_total)
      << usage.pages_shared << " shared of " << usage.pages_used << " used of " << usage.pages_total
      << " pages";
  free_kv_pages_.Set(static_cast<double>(usage.pages_total - usage.pages_used));
  private_kv_pages_.Set(static_cast<double>(usage.pages_used - usage.pages_shared));
  shared_kv_pages_.Set(static_cast<double>(usage.pages_shared));
}

void RoundMetrics::OnEvicted(int64_t rows) {
  evictions_.Increment();
  evicted_rows_.Increment(static_cast<double>(rows));
}

}  // namespace aerie
