#include "tests/testing/recording_observer.h"

#include "gtest/gtest.h"

namespace aerie {

void RecordingObserver::OnRound(const RoundRecord& record) {
  MutexLock lock(&mutex_);
  rounds_.push_back(record);
  changed_.NotifyAll();
}

void RecordingObserver::OnPass(const PassRecord& record) {
  MutexLock lock(&mutex_);
  passes_.push_back(record);
}

void RecordingObserver::OnSessionOpened() {
  MutexLock lock(&mutex_);
  ++opened_;
}

void RecordingObserver::OnSessionEnded(const SessionRecord& record) {
  MutexLock lock(&mutex_);
  ended_.push_back(record);
  changed_.NotifyAll();
}

void RecordingObserver::OnRejected(RejectReason reason) {
  MutexLock lock(&mutex_);
  rejected_.push_back(reason);
}

void RecordingObserver::OnReplyEncoded(absl::Duration copy_out) {
  EXPECT_GE(copy_out, absl::ZeroDuration());
  MutexLock lock(&mutex_);
  ++encoded_;
}

void RecordingObserver::OnLoad(int32_t queued, int32_t in_flight) {
  MutexLock lock(&mutex_);
  loads_.emplace_back(queued, in_flight);
}

void RecordingObserver::OnKvUsage(const KvUsage& usage) {
  MutexLock lock(&mutex_);
  kv_usages_.push_back(usage);
}

void RecordingObserver::OnEvicted(int64_t rows) {
  MutexLock lock(&mutex_);
  evicted_.push_back(rows);
}

std::vector<RoundRecord> RecordingObserver::rounds() const {
  MutexLock lock(&mutex_);
  return rounds_;
}

std::vector<PassRecord> RecordingObserver::passes() const {
  MutexLock lock(&mutex_);
  return passes_;
}

std::vector<SessionRecord> RecordingObserver::ended() const {
  MutexLock lock(&mutex_);
  return ended_;
}

std::vector<RejectReason> RecordingObserver::rejected() const {
  MutexLock lock(&mutex_);
  return rejected_;
}

std::vector<std::pair<int32_t, int32_t>> RecordingObserver::loads() const {
  MutexLock lock(&mutex_);
  return loads_;
}

int32_t RecordingObserver::opened() const {
  MutexLock lock(&mutex_);
  return opened_;
}

int32_t RecordingObserver::encoded() const {
  MutexLock lock(&mutex_);
  return encoded_;
}

std::vector<KvUsage> RecordingObserver::kv_usages() const {
  MutexLock lock(&mutex_);
  return kv_usages_;
}

std::vector<int64_t> RecordingObserver::evicted() const {
  MutexLock lock(&mutex_);
  return evicted_;
}

RoundRecord RecordingObserver::last_round() const {
  MutexLock lock(&mutex_);
  EXPECT_FALSE(rounds_.empty()) << "no round was told";
  return rounds_.empty() ? RoundRecord() : rounds_.back();
}

SessionRecord RecordingObserver::last_ended() const {
  MutexLock lock(&mutex_);
  EXPECT_FALSE(ended_.empty()) << "no end of a session was told";
  return ended_.empty() ? SessionRecord() : ended_.back();
}

void RecordingObserver::WaitForRounds(size_t count) const {
  MutexLock lock(&mutex_);
  changed_.WaitUntil(&mutex_, absl::InfiniteFuture(),
                     [this, count]()
                         ABSL_NO_THREAD_SAFETY_ANALYSIS { return rounds_.size() >= count; });
}

void RecordingObserver::WaitForEnded(size_t count) const {
  MutexLock lock(&mutex_);
  changed_.WaitUntil(&mutex_, absl::InfiniteFuture(),
                     [this, count]()
                         ABSL_NO_THREAD_SAFETY_ANALYSIS { return ended_.size() >= count; });
}

}  // namespace aerie
