// Keeps everything the engine tells, in order, for tests to look at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/mutex.h"
#include "server/engine/round_observer.h"

namespace aerie {

// Any thread.
class RecordingObserver : public RoundObserver {
 public:
  void OnRound(const RoundRecord& record) override;
  void OnPass(const PassRecord& record) override;
  void OnSessionOpened() override;
  void OnSessionEnded(const SessionRecord& record) override;
  void OnRejected(RejectReason reason) override;
  void OnReplyEncoded(absl::Duration copy_out) override;
  void OnLoad(int32_t queued, int32_t in_flight) override;
  void OnKvUsage(const KvUsage& usage) override;
  void OnEvicted(int64_t rows) override;

  // Copies of what came so far.
  std::vector<RoundRecord> rounds() const;
  std::vector<PassRecord> passes() const;
  std::vector<SessionRecord> ended() const;
  std::vector<RejectReason> rejected() const;
  std::vector<std::pair<int32_t, int32_t>> loads() const;  // {queued, in flight}
  int32_t opened() const;
  int32_t encoded() const;  // replies
  std::vector<KvUsage> kv_usages() const;
  std::vector<int64_t> evicted() const;  // rows

  // The newest one; the test fails when there is none.
  RoundRecord last_round() const;
  SessionRecord last_ended() const;

  // Waits until so many have been told: for what happens on the engine's thread without an answer
  // to a caller.
  void WaitForRounds(size_t count) const;
  void WaitForEnded(size_t count) const;

 private:
  mutable Mutex mutex_;
  mutable Condition changed_;
  std::vector<RoundRecord> rounds_ ABSL_GUARDED_BY(mutex_);
  std::vector<PassRecord> passes_ ABSL_GUARDED_BY(mutex_);
  std::vector<SessionRecord> ended_ ABSL_GUARDED_BY(mutex_);
  std::vector<RejectReason> rejected_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<int32_t, int32_t>> loads_ ABSL_GUARDED_BY(mutex_);
  int32_t opened_ ABSL_GUARDED_BY(mutex_) = 0;
  int32_t encoded_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<KvUsage> kv_usages_ ABSL_GUARDED_BY(mutex_);
  std::vector<int64_t> evicted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace aerie
