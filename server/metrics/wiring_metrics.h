// What the live guard tells, counted. PrometheusObserver hands its WiringObserver calls on to this.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/guard/wiring_observer.h"
#include "server/metrics/metric_registry.h"
#include "server/metrics/prometheus_observer.h"

namespace aerie {

// Thread rules are those of WiringObserver.
class WiringMetrics {
 public:
  // `registry` must outlive this. facts.captures > 0.
  WiringMetrics(MetricRegistry& registry, const prometheus::Labels& common,
                const WiringFacts& facts);

  void OnVote(VoteOutcome outcome) { checks_.Increment(outcome); }
  void OnState(WiringState state);
  void OnSummary(const WiringSummary& summary);
  void OnRowSizes(absl::Span<const double> rms);

 private:
  using StateGauges = std::array<prometheus::Gauge*, kWiringStates.size()>;
  static StateGauges AddStates(MetricRegistry::GaugeFamily& family);

  StateGauges sources_;
  StateGauges states_;
  CounterTable<VoteOutcome, kVoteOutcomes.size()> checks_;
  prometheus::Counter* suspect_alarms_;
  prometheus::Counter* wrong_alarms_;
  std::vector<prometheus::Gauge*> positions_;  // [captures]
  std::vector<prometheus::Gauge*> rms_;        // [captures]
};

}  // namespace aerie
