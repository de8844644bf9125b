// A whole load test: connect, make the workload, run, reconcile, report.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "client/loadtest/clock.h"
#include "client/loadtest/options.h"
#include "client/loadtest/report.h"
#include "client/loadtest/workload.h"

namespace aerie {
class DraftClient;
}

namespace aerie::loadtest {

class FaultInjector;
class PageReader;
class Runner;

class LoadTest {
 public:
  // Asks the server what it is and makes a workload that fits. UNAVAILABLE: no server there.
  // INVALID_ARGUMENT: a flag that the server cannot serve. Also fails as RecordedWorkload::Load
  // and the functions of PageReader do. `clock` must outlive the test.
  static absl::StatusOr<std::unique_ptr<LoadTest>> Prepare(LoadOptions options,
                                                           Clock* clock = &RealClock());
  ~LoadTest();

  // Once. `live` as Runner::Run.
  Report Run(const std::function<void(const Interval&)>& live);
  // Signal-safe.
  void Stop();

 private:
  LoadTest();

  LoadOptions options_;
  ServerFacts server_;
  std::vector<std::unique_ptr<DraftClient>> clients_;
  std::unique_ptr<Workload> workload_;
  std::unique_ptr<FaultInjector> faults_;  // null without faults
  std::unique_ptr<PageReader> page_;       // null without --metrics
  std::unique_ptr<Runner> runner_;
};

}  // namespace aerie::loadtest
