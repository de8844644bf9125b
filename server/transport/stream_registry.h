// The streams that are open, so that draining can reach them.
#pragma once

#include <memory>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace aerie {

// Something that can be told to end once what it has been asked is answered.
class Drainable {
 public:
  virtual ~Drainable() = default;
  virtual void BeginDrain() = 0;
};

// Any thread.
class StreamRegistry {
 public:
  // A stream that comes while draining is told at once.
  void Add(std::shared_ptr<Drainable> stream) {
    bool draining = false;
    {
      absl::MutexLock lock(&mutex_);
      streams_.insert(stream);
      draining = draining_;
    }
    if (draining) stream->BeginDrain();
  }

  void Remove(const std::shared_ptr<Drainable>& stream) {
    absl::MutexLock lock(&mutex_);
    streams_.erase(stream);
  }

  void Drain() {
    std::set<std::shared_ptr<Drainable>> streams;
    {
      absl::MutexLock lock(&mutex_);
      draining_ = true;
      streams = streams_;
    }
    // Without the lock: a stream that ends removes itself.
    for (const std::shared_ptr<Drainable>& stream : streams) stream->BeginDrain();
  }

  // Returns once no stream is open, or at `deadline`; true when none is.
  bool AwaitEmpty(absl::Time deadline) {
    absl::MutexLock lock(&mutex_);
    const auto empty = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return streams_.empty(); };
    return mutex_.AwaitWithDeadline(absl::Condition(&empty), deadline);
  }

 private:
  absl::Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<std::shared_ptr<Drainable>> streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace aerie
