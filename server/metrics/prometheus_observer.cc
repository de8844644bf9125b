#include "server/metrics/prometheus_observer.h"

#include "common/check.h"
#include "server/metrics/metric_registry.h"
#include "server/metrics/round_metrics.h"
#include "server/metrics/wiring_metrics.h"

namespace aerie {
namespace {

prometheus::Labels CommonLabels(const MetricLabels& labels) {
  return {{"drafter", labels.drafter}, {"version", labels.version}, {"target", labels.target}};
}

void AddFacts(MetricRegistry& registry, const PrometheusOptions& options) {
  const DrafterFacts& drafter = options.drafter;
  prometheus::Labels labels = CommonLabels(options.labels);
  labels.insert({{"wiring", drafter.wiring},
                 {"device", drafter.device},
                 {"dtype", drafter.dtype},
                 {"draft_vocab_size", std::to_string(drafter.draft_vocab_size)},
                 {"hidden_size", std::to_string(drafter.hidden_size)}});
  registry.AddGauge(kDrafterInfo, labels).Set(1);
  registry.AddGauge(kKvPageBytes, CommonLabels(options.labels))
      .Set(static_cast<double>(options.kv_page_bytes));
  labels = CommonLabels(options.labels);
  labels.insert({"mode", options.wiring.mode});
  registry.AddGauge(kWiringGuardInfo, labels).Set(1);
}

}  // namespace

class PrometheusObserver::Impl {
 public:
  explicit Impl(const PrometheusOptions& options)
      : rounds(*registry, CommonLabels(options.labels), options.max_k,
               options.max_sessions_per_pass) {
    AddFacts(*registry, options);
    if (options.wiring.captures > 0) {
      wiring.emplace(*registry, CommonLabels(options.labels), options.wiring);
    }
    rounds.OnKvUsage({.pages_total = options.kv_pages});
  }

  const std::shared_ptr<MetricRegistry> registry = std::make_shared<MetricRegistry>();
  RoundMetrics rounds;
  std::optional<WiringMetrics> wiring;
};

PrometheusObserver::PrometheusObserver(const PrometheusOptions& options) {
  AERIE_CHECK(options.max_k >= 1 && options.max_sessions_per_pass >= 1)
      << "max_k " << options.max_k << ", max_sessions_per_pass " << options.max_sessions_per_pass;
  impl_ = std::make_unique<Impl>(options);
}
PrometheusObserver::~PrometheusObserver() = default;

std::shared_ptr<prometheus::Collectable> PrometheusObserver::metrics() const {
  return impl_->registry;
}

void PrometheusObserver::OnRound(const RoundRecord& record) { impl_->rounds.OnRound(record); }
void PrometheusObserver::OnPass(const PassRecord& record) { impl_->rounds.OnPass(record); }
void PrometheusObserver::OnSessionOpened() { impl_->rounds.OnSessionOpened(); }
void PrometheusObserver::OnSessionEnded(const SessionRecord& record) {
  impl_->rounds.OnSessionEnded(record);
}
void PrometheusObserver::OnRejected(RejectReason reason) { impl_->rounds.OnRejected(reason); }
void PrometheusObserver::OnReplyEncoded(absl::Duration copy_out) {
  impl_->rounds.OnReplyEncoded(copy_out);
}
void PrometheusObserver::OnLoad(int32_t queued, int32_t in_flight) {
  impl_->rounds.OnLoad(queued, in_flight);
}
void PrometheusObserver::OnKvUsage(const KvUsage& usage) { impl_->rounds.OnKvUsage(usage); }
void PrometheusObserver::OnEvicted(int64_t rows) { impl_->rounds.OnEvicted(rows); }

void PrometheusObserver::OnVote(VoteOutcome outcome) { impl_->wiring.value().OnVote(outcome); }
void PrometheusObserver::OnState(WiringState state) { impl_->wiring.value().OnState(state); }
void PrometheusObserver::OnSummary(const WiringSummary& summary) {
  impl_->wiring.value().OnSummary(summary);
}
void PrometheusObserver::OnRowSizes(absl::Span<const double> rms) {
  impl_->wiring.value().OnRowSizes(rms);
}

}  // namespace aerie
