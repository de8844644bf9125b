// What health says, from the two things that it hangs on: whether the server takes calls at all,
// and whether the rows that it gets are worth drafting from.
#pragma once

#include <functional>
#include <set>

#include "absl/base/thread_annotations.h"
#include "common/mutex.h"

namespace aerie {

// Any thread.
class ServingGate {
 public:
  // `set_serving` is called with each change; it must not block and must not call the gate. Not
  // serving at first.
  explicit ServingGate(std::function<void(bool)> set_serving)
      : set_serving_(std::move(set_serving)) {}

  // From loading to draining.
  void SetReady(bool ready);
  // False while rows that come to a drafter, known by `source`, are known to be wrong. True at
  // first.
  void SetFit(const void* source, bool fit);

 private:
  void Tell() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::function<void(bool)> set_serving_;
  Mutex mutex_;
  bool ready_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<const void*> unfit_ ABSL_GUARDED_BY(mutex_);
  bool told_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace aerie
