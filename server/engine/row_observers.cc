#include "server/engine/row_observers.h"

#include <utility>

namespace aerie {
namespace {

class Watches final : public RowWatch {
 public:
  explicit Watches(std::vector<std::unique_ptr<RowWatch>> watches) : watches_(std::move(watches)) {}

  void OnRows(int64_t base_length, absl::Span<const int32_t> tokens, const HiddenRows& rows,
              absl::Time now) override {
    for (const auto& watch : watches_) watch->OnRows(base_length, tokens, rows, now);
  }
  void OnJudgement(const Judgement& judgement, absl::Time now) override {
    for (const auto& watch : watches_) watch->OnJudgement(judgement, now);
  }

 private:
  const std::vector<std::unique_ptr<RowWatch>> watches_;
};

}  // namespace

std::unique_ptr<RowWatch> RowObservers::Watch(const WatchedRows& rows, absl::Time now) {
  std::vector<std::unique_ptr<RowWatch>> watches;
  for (RowObserver* observer : observers_) {
    if (auto watch = observer->Watch(rows, now)) watches.push_back(std::move(watch));
  }
  if (watches.empty()) return nullptr;
  if (watches.size() == 1) return std::move(watches.front());
  return std::make_unique<Watches>(std::move(watches));
}

std::optional<Trial> RowObservers::TakeTrial() {
  for (RowObserver* observer : observers_) {
    tried_by_ = observer;
    if (std::optional<Trial> trial = observer->TakeTrial()) return trial;
  }
  return std::nullopt;
}

void RowObservers::OnTrial(absl::Span<const float> log_probs, absl::Time now) {
  tried_by_->OnTrial(log_probs, now);
}

}  // namespace aerie
