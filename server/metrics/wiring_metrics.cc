#include "server/metrics/wiring_metrics.h"

#include <string>

#include "common/check.h"

namespace aerie {
namespace {

std::vector<prometheus::Gauge*> AddCaptures(MetricRegistry::GaugeFamily& family, int32_t captures) {
  std::vector<prometheus::Gauge*> gauges;
  for (int32_t capture = 0; capture < captures; ++capture) {
    gauges.push_back(&family.Add({{"capture", std::to_string(capture)}}));
  }
  return gauges;
}

}  // namespace

WiringMetrics::StateGauges WiringMetrics::AddStates(MetricRegistry::GaugeFamily& family) {
  StateGauges gauges{};
  for (const auto& [state, label] : kWiringStates) {
    gauges.at(static_cast<size_t>(state)) = &family.Add({{"state", label}});
  }
  return gauges;
}

WiringMetrics::WiringMetrics(MetricRegistry& registry, const prometheus::Labels& common,
                             const WiringFacts& facts)
    : sources_(AddStates(registry.AddGauges(kWiringSources, common))),
      states_(AddStates(registry.AddGauges(kWiringState, common))),
      checks_(registry.AddCounters(kWiringChecks, common), "result", kVoteOutcomes),
      positions_(AddCaptures(registry.AddGauges(kWiringPlacePosition, common), facts.captures)),
      rms_(AddCaptures(registry.AddGauges(kHiddenRowRms, common), facts.captures)) {
  auto& alarms = registry.AddCounters(kWiringAlarms, common);
  suspect_alarms_ = &alarms.Add({{"state", "suspect"}});
  wrong_alarms_ = &alarms.Add({{"state", "wrong"}});
  if (!facts.expected_rms.empty()) {
    AERIE_CHECK(facts.expected_rms.size() == rms_.size()) << facts.expected_rms.size();
    const auto expected =
        AddCaptures(registry.AddGauges(kHiddenRowRmsExpected, common), facts.captures);
    for (size_t i = 0; i < expected.size(); ++i) expected[i]->Set(facts.expected_rms[i]);
  }
  if (facts.expected_accept_length.has_value()) {
    registry.AddGauge(kWiringExpectedAcceptLength, common).Set(*facts.expected_accept_length);
  }
  OnSummary({});
}

void WiringMetrics::OnState(WiringState state) {
  if (state == WiringState::kSuspect) suspect_alarms_->Increment();
  if (state == WiringState::kWrong) wrong_alarms_->Increment();
}

void WiringMetrics::OnSummary(const WiringSummary& summary) {
  for (size_t i = 0; i < sources_.size(); ++i) {
    sources_[i]->Set(summary.sources.at(i));
    states_[i]->Set(i == static_cast<size_t>(summary.worst) ? 1 : 0);
  }
  for (size_t i = 0; i < positions_.size(); ++i) {
    positions_[i]->Set(i < summary.positions.size() ? summary.positions[i] : 0);
  }
}

void WiringMetrics::OnRowSizes(absl::Span<const double> rms) {
  AERIE_CHECK(rms.size() == rms_.size()) << rms.size() << " of " << rms_.size();
  for (size_t i = 0; i < rms_.size(); ++i) rms_[i]->Set(rms[i]);
}

}  // namespace aerie
