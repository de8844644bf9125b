// One session of a load test from open to close: the worker's loop of drafting, verifying and
// committing.
#pragma once

#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/draft_client.h"
#include "client/loadtest/stats.h"
#include "client/loadtest/workload.h"

namespace aerie::loadtest {

// The part of a run that counts: from the end of the warm-up to the end of the run.
struct Window {
  absl::Time begin = absl::InfinitePast();
  absl::Time end = absl::InfiniteFuture();  // no round is begun after it
  bool Holds(absl::Time from, absl::Time to) const { return from >= begin && to <= end; }
};

// Counters of one worker; the live line reads them while the worker counts.
struct WorkerStats {
  absl::Mutex mutex;
  MeasuredStats measured ABSL_GUARDED_BY(mutex);
  WholeStats whole ABSL_GUARDED_BY(mutex);
  // Since the live line last looked; with the warm-up.
  Histogram recent_rounds ABSL_GUARDED_BY(mutex);
  AcceptanceTally recent_acceptance ABSL_GUARDED_BY(mutex);
  int64_t recent_tokens ABSL_GUARDED_BY(mutex) = 0;
};

struct SessionPlan {
  int32_t k = 1;
  SessionOptions session;      // its seed is the first session's; the next one's is one more
  absl::Duration verify_time;  // that the made-up target says a verification took; for adaptive k
  int64_t rounds = 0;          // at most; 0: until the sequence is finished
  Window window;
  std::function<bool()> stopped;  // true: end at the next round
};

// Runs one session and counts it. False: it could not even be opened, or the server was found to be
// away.
bool RunSession(DraftClient& client, const Workload& workload, int64_t number,
                const SessionPlan& plan, WorkerStats* stats);

}  // namespace aerie::loadtest
