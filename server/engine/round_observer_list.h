// Several observers as one: each is told everything, in the order of the list.
#pragma once

#include <utility>
#include <vector>

#include "server/engine/round_observer.h"

namespace aerie {

// Thread rules are those of RoundObserver.
class RoundObserverList final : public RoundObserver {
 public:
  // They must outlive the list.
  explicit RoundObserverList(std::vector<RoundObserver*> observers)
      : observers_(std::move(observers)) {}

  void OnRound(const RoundRecord& record) override {
    for (RoundObserver* observer : observers_) observer->OnRound(record);
  }
  void OnPass(const PassRecord& record) override {
    for (RoundObserver* observer : observers_) observer->OnPass(record);
  }
  void OnSessionOpened() override {
    for (RoundObserver* observer : observers_) observer->OnSessionOpened();
  }
  void OnSessionEnded(const SessionRecord& record) override {
    for (RoundObserver* observer : observers_) observer->OnSessionEnded(record);
  }
  void OnRejected(RejectReason reason) override {
    for (RoundObserver* observer : observers_) observer->OnRejected(reason);
  }
  void OnReplyEncoded(absl::Duration copy_out) override {
    for (RoundObserver* observer : observers_) observer->OnReplyEncoded(copy_out);
  }
  void OnLoad(int32_t queued, int32_t in_flight) override {
    for (RoundObserver* observer : observers_) observer->OnLoad(queued, in_flight);
  }
  void OnKvUsage(const KvUsage& usage) override {
    for (RoundObserver* observer : observers_) observer->OnKvUsage(usage);
  }
  void OnEvicted(int64_t rows) override {
    for (RoundObserver* observer : observers_) observer->OnEvicted(rows);
  }

 private:
  const std::vector<RoundObserver*> observers_;
};

}  // namespace aerie
