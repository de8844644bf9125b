// A clock that only moves when it is told to, or when somebody sleeps on it.
#pragma once

#include <algorithm>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/loadtest/clock.h"

namespace aerie::loadtest {

// With one thread that sleeps on it, time passes exactly as that thread's work says.
class FakeClock : public Clock {
 public:
  absl::Time Now() override {
    absl::MutexLock lock(&mutex_);
    return now_;
  }
  void SleepUntil(absl::Time until) override {
    absl::MutexLock lock(&mutex_);
    now_ = std::max(now_, until);
  }
  void Advance(absl::Duration by) {
    absl::MutexLock lock(&mutex_);
    now_ += by;
  }

 private:
  absl::Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_) = absl::FromUnixSeconds(1'800'000'000);
};

}  // namespace aerie::loadtest
