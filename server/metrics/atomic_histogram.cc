#include "server/metrics/atomic_histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/check.h"

namespace aerie {

AtomicHistogram::AtomicHistogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {
  AERIE_CHECK(std::adjacent_find(bounds_.begin(), bounds_.end(), std::greater_equal<>()) ==
              bounds_.end())
      << "bucket bounds must grow";
}

void AtomicHistogram::Observe(double value) {
  AERIE_CHECK(std::isfinite(value)) << "observed " << value;
  const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  counts_[bucket].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

prometheus::ClientMetric AtomicHistogram::Collect() const {
  prometheus::ClientMetric metric;
  auto& histogram = metric.histogram;
  histogram.bucket.reserve(counts_.size());
  // The count is summed from the buckets, not kept beside them, so that it always equals the +Inf
  // bucket.
  for (size_t i = 0; i < counts_.size(); ++i) {
    histogram.sample_count += counts_[i].load(std::memory_order_relaxed);
    histogram.bucket.push_back(
        {histogram.sample_count,
         i < bounds_.size() ? bounds_[i] : std::numeric_limits<double>::infinity()});
  }
  histogram.sample_sum = sum_.load(std::memory_order_relaxed);
  return metric;
}

HistogramFamily::HistogramFamily(const MetricName& name, prometheus::Labels common,
                                 std::vector<double> bounds)
    : name_(name), common_(std::move(common)), bounds_(std::move(bounds)) {}

AtomicHistogram& HistogramFamily::Add(const prometheus::Labels& labels) {
  prometheus::Labels all = common_;
  all.insert(labels.begin(), labels.end());
  return *children_.emplace_back(std::move(all), std::make_unique<AtomicHistogram>(bounds_)).second;
}

prometheus::MetricFamily HistogramFamily::Collect() const {
  prometheus::MetricFamily family = {name_.name, name_.help, prometheus::MetricType::Histogram, {}};
  for (const auto& [labels, histogram] : children_) {
    prometheus::ClientMetric& metric = family.metric.emplace_back(histogram->Collect());
    for (const auto& [name, value] : labels) metric.label.push_back({name, value});
  }
  return family;
}

}  // namespace aerie
