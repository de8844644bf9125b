// A whole load test: connect, make the workload, run, report.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/loadtest/options.h"
#include "client/loadtest/report.h"
#include "client/loadtest/runner.h"

namespace aerie::loadtest {

class LoadTest {
 public:
  // Asks the server what it is and makes a workload that fits. UNAVAILABLE: no server there.
  // INVALID_ARGUMENT: a flag that the server cannot serve. Also fails as RecordedWorkload::Load
  // does.
  static absl::StatusOr<std::unique_ptr<LoadTest>> Prepare(LoadOptions options);

  // Once. `live` as Runner::Run.
  Report Run(const std::function<void(const LiveSample&)>& live);
  // Signal-safe.
  void Stop() { runner_->Stop(); }

 private:
  LoadTest() = default;

  LoadOptions options_;
  v1::GetServerInfoResponse server_;
  std::unique_ptr<DraftClient> client_;
  std::unique_ptr<Workload> workload_;
  std::unique_ptr<Runner> runner_;
};

}  // namespace aerie::loadtest
