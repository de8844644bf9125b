// SIGTERM and SIGINT as something to wait for.
//
// The first asks the server to drain; a second ends the process at once, with exit code 128 +
// signal, since whoever sends it has lost patience.
#pragma once

#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace aerie {

// One a process, made before any other thread: it blocks the signals, and threads inherit that.
class StopSignal {
 public:
  StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // Returns once the first signal has come.
  void Wait() { stopped_.WaitForNotification(); }
  // Returns then, or after `patience`; true when it has come.
  bool WaitFor(absl::Duration patience) {
    return stopped_.WaitForNotificationWithTimeout(patience);
  }
  bool HasCome() const { return stopped_.HasBeenNotified(); }

 private:
  absl::Notification stopped_;
};

}  // namespace aerie
