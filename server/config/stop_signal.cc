#include "server/config/stop_signal.h"

#include <pthread.h>
#include <signal.h>

#include <cstdlib>
#include <thread>
#include <utility>

#include "common/check.h"
#include "common/log.h"

namespace aerie {

StopSignal::StopSignal(std::function<void()> on_user_signal) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGUSR1);
  sigaddset(&signals, SIGHUP);
  AERIE_CHECK(pthread_sigmask(SIG_BLOCK, &signals, nullptr) == 0);
  // The next one that asks us to stop.
  const auto next_stop = [this, signals, on_user_signal = std::move(on_user_signal)] {
    int signal = 0;
    while (true) {
      sigwait(&signals, &signal);
      if (signal == SIGUSR1) {
        on_user_signal();
      } else if (signal == SIGHUP) {
        HangUp();
      } else {
        return signal;
      }
    }
  };
  // Detached, since it waits for signals until the process ends; so the object must live as long.
  std::thread([this, next_stop] {
    const int first = next_stop();
    AERIE_LOG(info, "signal {}: draining; a second one ends the process at once", first);
    stopped_.Notify();
    const int signal = next_stop();
    AERIE_LOG(warn, "signal {} again: leaving at once", signal);
    std::_Exit(128 + signal);
  }).detach();
}

void StopSignal::SetHangupHandler(std::function<void()> on_hangup) {
  const MutexLock lock(&mutex_);
  on_hangup_ = std::move(on_hangup);
}

void StopSignal::HangUp() {
  const MutexLock lock(&mutex_);
  if (on_hangup_) return on_hangup_();
  AERIE_LOG(warn, "SIGHUP is ignored: no drafter serves at the moment that could be loaded anew");
}

}  // namespace aerie
