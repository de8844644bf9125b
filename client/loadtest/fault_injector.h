// Faults on purpose, beside the load: what broken, hasty and slow workers do to a server.
//
// Each fault has a session and a connection's stub of its own, so it must not change a single
// number of the sessions beside it; that is what a run with faults shows. Each also knows how it
// has to be answered, and that its session is as good afterwards as before.
#pragma once

#include <cstdint>

#include "absl/synchronization/mutex.h"
#include "client/loadtest/options.h"
#include "client/loadtest/stats.h"
#include "client/loadtest/workload.h"

namespace aerie::loadtest {

// The names under which faults are counted.
//   cancel       a call is cancelled right after it was sent
//   deadline     a call has --fault-deadline-time to be answered
//   slow_reader  a stream sends 32 calls before it reads the first answer
//   reconnect    the connection is dropped between two calls of a session
//   malformed    a call that is no message, has bytes missing, or a token outside the vocabulary

// Any thread.
class FaultInjector {
 public:
  // `workload` gives the rows and must outlive this.
  FaultInjector(const LoadOptions& options, const Workload* workload)
      : options_(options), workload_(workload) {}

  // Draws, the same for the same session and round, which faults to put in here, and does so:
  // blocks until they are answered. Counts into `whole` under `mutex`.
  void MaybeInject(int64_t session, int64_t round, absl::Mutex* mutex, WholeStats* whole);

 private:
  const LoadOptions options_;
  const Workload* const workload_;
};

}  // namespace aerie::loadtest
