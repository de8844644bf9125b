// Runs the sessions of a load test on threads of their own and adds up what they counted.
//
// Closed loop: every worker has one session with one call under way, so the load follows the
// server's speed and latencies are those of a worker that waits. It says nothing about a server
// that is asked faster than it answers.
#pragma once

#include <atomic>
#include <functional>

#include "client/loadtest/options.h"
#include "client/loadtest/session_run.h"
#include "client/loadtest/stats.h"
#include "client/loadtest/workload.h"

namespace aerie::loadtest {

struct RunResult {
  MeasuredStats measured;
  WholeStats whole;
  absl::Time started;
  absl::Duration seconds;       // of the measured window
  double tester_cpu_share = 0;  // of all processors, during the run
};

// What happened since the last time this was asked.
struct LiveSample {
  absl::Duration since_start, interval;
  Histogram rounds;
  AcceptanceTally acceptance;
  int64_t tokens = 0;
  int64_t errors = 0;  // since the start
};

class Runner {
 public:
  // `options` must be valid; `client` and `workload` must outlive this.
  Runner(const LoadOptions& options, DraftClient* client, const Workload* workload);

  // Blocks until the sessions are done. `live`, when given, is called each second on another
  // thread.
  RunResult Run(const std::function<void(const LiveSample&)>& live);

  // Signal-safe. Sessions end at their next round.
  void Stop() { stopped_.store(true, std::memory_order_relaxed); }

 private:
  void Work(WorkerStats* stats);
  LiveSample TakeSample(absl::Time start, absl::Time* last);

  const LoadOptions options_;
  DraftClient* const client_;
  const Workload* const workload_;
  const int64_t requests_;  // INT64_MAX with a duration
  SessionPlan plan_;
  std::vector<std::unique_ptr<WorkerStats>> stats_;
  std::atomic<int64_t> next_number_{0};
  std::atomic<bool> stopped_{false};
};

}  // namespace aerie::loadtest
