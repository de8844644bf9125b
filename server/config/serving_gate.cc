#include "server/config/serving_gate.h"

#include "common/log.h"

namespace aerie {

void ServingGate::SetReady(bool ready) {
  const MutexLock lock(&mutex_);
  ready_ = ready;
  Tell();
}

void ServingGate::SetFit(bool fit) {
  const MutexLock lock(&mutex_);
  if (fit == fit_) return;
  fit_ = fit;
  if (ready_) {
    AERIE_LOG(warn, "health says {} from now on: rows of a worker {} (--wiring-guard not-serving)",
              fit ? "SERVING" : "NOT_SERVING", fit ? "are right again" : "are wrong");
  }
  Tell();
}

void ServingGate::Tell() {
  const bool serving = ready_ && fit_;
  if (serving == told_) return;
  told_ = serving;
  set_serving_(serving);
}

}  // namespace aerie
