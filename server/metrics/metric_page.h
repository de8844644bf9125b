// All that a scrape sees: the series of the process and those of each loaded drafter.
//
// What one would get wrong: a family of metrics must come once on the page, whoever has series of
// it, and no series twice. Two loads of the same weights have the same labels, so the later one
// takes the earlier one's place: its counters begin at 0 again.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/mutex.h"
#include "prometheus/collectable.h"

namespace aerie {

// Any thread.
class MetricPage final : public prometheus::Collectable {
 public:
  // `process`: what does not hang on drafters.
  explicit MetricPage(std::shared_ptr<prometheus::Collectable> process)
      : process_(std::move(process)) {}

  // `key`: equal for those whose labels are equal.
  void Add(const std::string& key, std::shared_ptr<prometheus::Collectable> metrics);
  // Nothing when another one has taken its place.
  void Remove(const std::string& key, const prometheus::Collectable* metrics);

  // With the process_ metrics, read now.
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const std::shared_ptr<prometheus::Collectable> process_;
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<prometheus::Collectable>> drafters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace aerie
