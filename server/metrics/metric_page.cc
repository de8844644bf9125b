#include "server/metrics/metric_page.h"

#include <iterator>
#include <utility>

#include "server/metrics/process_metrics.h"

namespace aerie {

void MetricPage::Add(const std::string& key, std::shared_ptr<prometheus::Collectable> metrics) {
  const MutexLock lock(&mutex_);
  drafters_[key] = std::move(metrics);
}

void MetricPage::Remove(const std::string& key, const prometheus::Collectable* metrics) {
  const MutexLock lock(&mutex_);
  const auto found = drafters_.find(key);
  if (found != drafters_.end() && found->second.get() == metrics) drafters_.erase(found);
}

std::vector<prometheus::MetricFamily> MetricPage::Collect() const {
  std::vector<std::shared_ptr<prometheus::Collectable>> sources = {process_};
  {
    const MutexLock lock(&mutex_);
    for (const auto& [key, metrics] : drafters_) sources.push_back(metrics);
  }
  std::vector<prometheus::MetricFamily> families;
  std::map<std::string, size_t> places;
  for (const auto& source : sources) {
    for (prometheus::MetricFamily& family : source->Collect()) {
      const auto [place, added] = places.emplace(family.name, families.size());
      if (added) {
        families.push_back(std::move(family));
        continue;
      }
      std::vector<prometheus::ClientMetric>& series = families[place->second].metric;
      std::move(family.metric.begin(), family.metric.end(), std::back_inserter(series));
    }
  }
  std::vector<prometheus::MetricFamily> process = CollectProcessMetrics();
  std::move(process.begin(), process.end(), std::back_inserter(families));
  return families;
}

}  // namespace aerie
