#include "server/config/stop_signal.h"

#include <pthread.h>
#include <signal.h>

#include <cstdlib>

#include "common/check.h"
#include "common/log.h"

namespace aerie {

StopSignal::StopSignal() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  AERIE_CHECK(pthread_sigmask(SIG_BLOCK, &signals, nullptr) == 0);
  // Detached, since it waits for signals until the process ends; so the object must live as long.
  std::thread([this, signals] {
    int signal = 0;
    sigwait(&signals, &signal);
    AERIE_LOG(info, "signal {}: draining; a second one ends the process at once", signal);
    stopped_.Notify();
    sigwait(&signals, &signal);
    AERIE_LOG(warn, "signal {} again: leaving at once", signal);
    std::_Exit(128 + signal);
  }).detach();
}

}  // namespace aerie
