// What the server's counters grew by during a run, against what the run knows it must be.
//
// To the unit for sessions that went as they should. Calls whose outcome at the server cannot be
// known (failed, cut off, sent twice, and all faults) widen what is expected to a range. The page
// counts everybody: another client of the same server shows as a difference.
#pragma once

#include <string>
#include <vector>

#include "client/loadtest/metrics_page.h"
#include "client/loadtest/stats.h"

namespace aerie::loadtest {

struct CounterCheck {
  std::string counter;  // with its label, as one would ask Prometheus
  double least = 0, most = 0;
  double found = 0;
  bool fits() const { return found >= least && found <= most; }
};

struct Reconciliation {
  bool done = false;  // false: no metrics page was given
  std::vector<CounterCheck> checks;

  int64_t differences() const;
};

// Other counters, and why they are not compared.
struct ExcludedCounters {
  const char* counters;
  const char* why;
};
const std::vector<ExcludedCounters>& NotReconciled();

// `k`: tokens that each round asked for. FAILED_PRECONDITION: a page lacks a counter, or one fell
// (the server was restarted).
absl::StatusOr<Reconciliation> Reconcile(const MetricsPage& before, const MetricsPage& after,
                                         const WholeStats& whole, int32_t k);

}  // namespace aerie::loadtest
