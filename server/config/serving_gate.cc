#include "server/config/serving_gate.h"

#include "common/log.h"

namespace aerie {

void ServingGate::SetReady(bool ready) {
  const MutexLock lock(&mutex_);
  ready_ = ready;
  Tell();
}

void ServingGate::SetFit(const void* source, bool fit) {
  const MutexLock lock(&mutex_);
  const bool before = unfit_.empty();
  if (fit) {
    unfit_.erase(source);
  } else {
    unfit_.insert(source);
  }
  if (unfit_.empty() == before) return;
  if (ready_) {
    AERIE_LOG(warn, "health says {} from now on: rows of a worker {} (--wiring-guard not-serving)",
              fit ? "SERVING" : "NOT_SERVING", fit ? "are right again" : "are wrong");
  }
  Tell();
}

void ServingGate::Tell() {
  const bool serving = ready_ && unfit_.empty();
  if (serving == told_) return;
  told_ = serving;
  set_serving_(serving);
}

}  // namespace aerie
