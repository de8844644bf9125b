// One session of a load test from open to close: the worker's loop of drafting, verifying and
// committing.
#pragma once

#include <atomic>
#include <functional>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/loadtest/round_gate.h"
#include "client/loadtest/stats.h"
#include "client/loadtest/workload.h"

namespace aerie {
class DraftClient;
}

namespace aerie::loadtest {

// Counters of one worker; the live line reads them while the worker counts.
struct WorkerStats {
  std::atomic<bool> in_flight{false};  // a round is under way
  absl::Mutex mutex;
  MeasuredStats measured ABSL_GUARDED_BY(mutex);
  WholeStats whole ABSL_GUARDED_BY(mutex);
  RecentStats recent ABSL_GUARDED_BY(mutex);
};

struct SessionPlan {
  int32_t k = 1;
  SessionOptions session;      // its seed is the first session's; the next one's is one more
  absl::Duration verify_time;  // that the made-up target says a verification took; for adaptive k
  int64_t rounds = 0;          // at most; 0: until the sequence is finished
  std::optional<absl::Duration> goodput;
  RoundGate* gate = nullptr;
  // Called before each round is waited for, with the session's number and the round's; may be
  // empty.
  std::function<void(int64_t session, int64_t round, WorkerStats* stats)> beside_round;
};

// Runs one session of worker `worker` and counts it. False: it could not even be opened, or the
// server was found to be away.
bool RunSession(DraftClient& client, const Workload& workload, int64_t number, int32_t worker,
                const SessionPlan& plan, WorkerStats* stats);

}  // namespace aerie::loadtest
