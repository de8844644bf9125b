// A lock that both clang's -Wthread-safety and the thread sanitizer understand.
//
// absl::Mutex is not one: the packaged Abseil is built without the sanitizer, which therefore does
// not see its locking and reports races that are none. Code that runs under the tsan preset uses
// this; the rest may use absl::Mutex.
#pragma once

#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace aerie {

class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  friend class Condition;
  std::mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

// What a thread waits for until another one changed something. Whoever changes it notifies.
class Condition {
 public:
  void NotifyAll() { changed_.notify_all(); }

  // Waits, without holding `mutex` meanwhile, until `holds()` or until `deadline`. Gives holds().
  // The analysis cannot see that `holds` runs under the caller's lock.
  template <typename Predicate>
  bool WaitUntil(Mutex* mutex, absl::Time deadline,
                 Predicate holds) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    while (!holds()) {
      // The ends of time overflow inside the standard library.
      if (deadline == absl::InfiniteFuture()) {
        changed_.wait(lock);
      } else if (deadline <= absl::Now() ||
                 changed_.wait_until(lock, absl::ToChronoTime(deadline)) ==
                     std::cv_status::timeout) {
        lock.release();
        return holds();
      }
    }
    lock.release();
    return true;
  }

 private:
  std::condition_variable changed_;
};

}  // namespace aerie
