// A Prometheus histogram without a lock.
//
// prometheus-cpp's own takes a mutex for each observation and each scrape, so a scrape that is
// descheduled while it holds one would stop the engine thread. Here a scrape may see an observation
// in the count and not yet in the sum.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "prometheus/client_metric.h"
#include "prometheus/labels.h"
#include "prometheus/metric_family.h"
#include "server/metrics/metric_names.h"

namespace aerie {

// Any thread.
class AtomicHistogram {
 public:
  // `bounds` are the inclusive upper bounds of all buckets but the last, which is +Inf; growing.
  explicit AtomicHistogram(std::vector<double> bounds);

  // `value` must be finite: one NaN would spoil the sum for the life of the process.
  void Observe(double value);
  prometheus::ClientMetric Collect() const;

 private:
  const std::vector<double> bounds_;
  std::vector<std::atomic<uint64_t>> counts_;  // one more than bounds_
  std::atomic<double> sum_{0.0};
};

// The histograms of one name. Add() is for one thread, before the first Collect().
class HistogramFamily {
 public:
  HistogramFamily(const MetricName& name, prometheus::Labels common, std::vector<double> bounds);

  // The reference is good for the family's life.
  AtomicHistogram& Add(const prometheus::Labels& labels);
  prometheus::MetricFamily Collect() const;

 private:
  const MetricName name_;
  const prometheus::Labels common_;
  const std::vector<double> bounds_;
  std::vector<std::pair<prometheus::Labels, std::unique_ptr<AtomicHistogram>>> children_;
};

}  // namespace aerie
