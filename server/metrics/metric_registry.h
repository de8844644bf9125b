// The series of one drafter, or those of the process itself: families are made here once, and a
// scrape collects them here.
//
// Handles are references that stay good for the registry's life. Looking one up takes a lock and a
// hash, so they are made when the program starts and kept.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <vector>

#include "common/check.h"
#include "prometheus/collectable.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/labels.h"
#include "prometheus/registry.h"
#include "server/metrics/atomic_histogram.h"
#include "server/metrics/metric_names.h"

namespace aerie {

// Families are made by one thread, before the first Collect().
class MetricRegistry final : public prometheus::Collectable {
 public:
  using CounterFamily = prometheus::Family<prometheus::Counter>;
  using GaugeFamily = prometheus::Family<prometheus::Gauge>;

  // Each name once.
  CounterFamily& AddCounters(const MetricName& name, const prometheus::Labels& common);
  HistogramFamily& AddHistograms(const MetricName& name, const prometheus::Labels& common,
                                 std::vector<double> bounds);
  GaugeFamily& AddGauges(const MetricName& name, const prometheus::Labels& common);
  // Families of one child.
  prometheus::Counter& AddCounter(const MetricName& name, const prometheus::Labels& common);
  prometheus::Gauge& AddGauge(const MetricName& name, const prometheus::Labels& labels);

  // Any thread.
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  prometheus::Registry registry_{prometheus::Registry::InsertBehavior::Throw};
  std::deque<HistogramFamily> histograms_;  // a deque: references must survive the next family
};

// One counter for each enumerator.
template <typename Enum, size_t N>
class CounterTable {
 public:
  CounterTable(MetricRegistry::CounterFamily& family, const char* label,
               const std::array<LabelValue<Enum>, N>& values, const prometheus::Labels& more = {}) {
    for (const auto& [value, name] : values) {
      prometheus::Labels labels = more;
      labels[label] = name;
      counters_.at(static_cast<size_t>(value)) = &family.Add(labels);
    }
  }

  void Increment(Enum value) {
    const auto index = static_cast<size_t>(value);
    AERIE_CHECK(index < N) << "enumerator " << index << " has no label";
    counters_[index]->Increment();
  }

 private:
  std::array<prometheus::Counter*, N> counters_{};
};

}  // namespace aerie
