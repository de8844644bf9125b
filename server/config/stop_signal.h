// The signals of a running server as something to wait for.
//
// SIGTERM or SIGINT: the first asks the server to drain; a second ends the process at once, with
// exit code 128 + signal, since whoever sends it has lost patience. SIGUSR1: more log, or less.
// SIGHUP: drafters are loaded anew.
#pragma once

#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/mutex.h"

namespace aerie {

// One a process, made before any other thread: it blocks the signals, and threads inherit that.
class StopSignal {
 public:
  // `on_user_signal` is called for each SIGUSR1, on a thread of its own.
  explicit StopSignal(std::function<void()> on_user_signal);
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // Returns once the first signal has come, or after `patience`; true when it has come.
  bool WaitFor(absl::Duration patience) {
    return stopped_.WaitForNotificationWithTimeout(patience);
  }
  // Called for each SIGHUP, on that thread, which must not be held up; empty: it is told of in the
  // log, and ignored. Returns once no call of the one before is under way.
  void SetHangupHandler(std::function<void()> on_hangup);

  bool HasCome() const { return stopped_.HasBeenNotified(); }

 private:
  void HangUp();

  Mutex mutex_;
  std::function<void()> on_hangup_ ABSL_GUARDED_BY(mutex_);
  absl::Notification stopped_;
};

}  // namespace aerie
