// Several observers of the same rows, as one.
#pragma once

#include <memory>
#include <vector>

#include "server/engine/row_observer.h"

namespace aerie {

// Tells each of them, in order. They outlive it.
class RowObservers final : public RowObserver {
 public:
  explicit RowObservers(std::vector<RowObserver*> observers) : observers_(std::move(observers)) {}

  std::unique_ptr<RowWatch> Watch(const WatchedRows& rows, absl::Time now) override;
  std::optional<Trial> TakeTrial() override;
  void OnTrial(absl::Span<const float> log_probs, absl::Time now) override;

 private:
  const std::vector<RowObserver*> observers_;
  RowObserver* tried_by_ = nullptr;  // whose trial is under way
};

}  // namespace aerie
