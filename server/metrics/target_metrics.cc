#include "server/metrics/target_metrics.h"

#include <cstdint>
#include <string>
#include <utility>

#include "prometheus/metric_family.h"
#include "server/metrics/metric_names.h"

namespace aerie {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

class Family {
 public:
  Family(const MetricName& name, prometheus::MetricType type) {
    family_.name = name.name;
    family_.help = name.help;
    family_.type = type;
  }

  void Add(const Labels& labels, int64_t value) {
    prometheus::ClientMetric& series = family_.metric.emplace_back();
    for (const auto& [label, text] : labels) series.label.push_back({label, text});
    const auto number = static_cast<double>(value);
    if (family_.type == prometheus::MetricType::Gauge) {
      series.gauge.value = number;
    } else {
      series.counter.value = number;
    }
  }

  prometheus::MetricFamily Take() { return std::move(family_); }

 private:
  prometheus::MetricFamily family_;
};

class QuotaMetrics final : public prometheus::Collectable {
 public:
  explicit QuotaMetrics(std::function<std::vector<TargetUsage>()> usage)
      : usage_(std::move(usage)) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    Family sessions(kTargetSessions, prometheus::MetricType::Gauge);
    Family rows(kTargetRows, prometheus::MetricType::Counter);
    Family refused(kTargetRefused, prometheus::MetricType::Counter);
    for (const TargetUsage& usage : usage_()) {
      sessions.Add({{"quota", usage.quota}}, usage.sessions);
      rows.Add({{"quota", usage.quota}}, usage.rows);
      refused.Add({{"quota", usage.quota}, {"limit", "sessions"}}, usage.refused_sessions);
      refused.Add({{"quota", usage.quota}, {"limit", "rows"}}, usage.refused_calls);
    }
    return {sessions.Take(), rows.Take(), refused.Take()};
  }

 private:
  const std::function<std::vector<TargetUsage>()> usage_;
};

}  // namespace

std::shared_ptr<prometheus::Collectable> TargetMetrics(
    std::function<std::vector<TargetUsage>()> usage) {
  return std::make_shared<QuotaMetrics>(std::move(usage));
}

}  // namespace aerie
