// Runs the sessions of a load test on threads of their own and adds up what they counted.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "client/loadtest/fault_injector.h"
#include "client/loadtest/hdr_log.h"
#include "client/loadtest/options.h"
#include "client/loadtest/round_gate.h"
#include "client/loadtest/run_result.h"
#include "client/loadtest/session_run.h"
#include "client/loadtest/workload.h"

namespace aerie::loadtest {

class Runner {
 public:
  // `options` must be valid. Everything must outlive this; `faults` may be null.
  Runner(const LoadOptions& options, std::vector<DraftClient*> clients, const Workload* workload,
         FaultInjector* faults, Clock* clock);

  // Blocks until the sessions are done. `live`, when given, is called with each interval, on
  // another thread.
  RunResult Run(const std::function<void(const Interval&)>& live);

  // Signal-safe. Sessions end at their next round.
  void Stop() { gate_.Stop(); }

 private:
  void Work(int32_t worker);
  Interval TakeInterval(absl::Duration begin, HdrLog* log);

  const LoadOptions options_;
  const std::vector<DraftClient*> clients_;
  const Workload* const workload_;
  const int64_t requests_;  // INT64_MAX when something else ends the run
  RoundGate gate_;
  SessionPlan plan_;
  std::vector<std::unique_ptr<WorkerStats>> stats_;
  std::atomic<int64_t> next_number_{0};
};

}  // namespace aerie::loadtest
