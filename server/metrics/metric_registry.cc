#include "server/metrics/metric_registry.h"

#include <utility>

namespace aerie {

MetricRegistry::CounterFamily& MetricRegistry::AddCounters(const MetricName& name,
                                                           const prometheus::Labels& common) {
  return prometheus::BuildCounter().Name(name.name).Help(name.help).Labels(common).Register(
      registry_);
}

HistogramFamily& MetricRegistry::AddHistograms(const MetricName& name,
                                               const prometheus::Labels& common,
                                               std::vector<double> bounds) {
  return histograms_.emplace_back(name, common, std::move(bounds));
}

MetricRegistry::GaugeFamily& MetricRegistry::AddGauges(const MetricName& name,
                                                       const prometheus::Labels& common) {
  return prometheus::BuildGauge().Name(name.name).Help(name.help).Labels(common).Register(
      registry_);
}

prometheus::Counter& MetricRegistry::AddCounter(const MetricName& name,
                                                const prometheus::Labels& common) {
  return AddCounters(name, common).Add({});
}

prometheus::Gauge& MetricRegistry::AddGauge(const MetricName& name,
                                            const prometheus::Labels& labels) {
  return prometheus::BuildGauge().Name(name.name).Help(name.help).Register(registry_).Add(labels);
}

std::vector<prometheus::MetricFamily> MetricRegistry::Collect() const {
  std::vector<prometheus::MetricFamily> families = registry_.Collect();
  for (const HistogramFamily& histogram : histograms_) families.push_back(histogram.Collect());
  return families;
}

}  // namespace aerie
