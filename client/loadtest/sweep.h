// A sweep: the same load at growing levels of one thing, to the knee and beyond.
//
// What a point is worth depends on what is swept (SweepRule() says it in words): of rate and
// sessions, rounds done a second over their mean latency from the intended start, which is highest
// where more load stops buying throughput and starts to buy latency; of rows likewise, with rows a
// second and the prompt's latency; of k, committed tokens a second. The knee is the point worth
// most among those that keep up: 95 % of what an open loop asked for is done, and no more rounds
// fail than may.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace aerie::loadtest {

enum class SweepOver { kRate, kSessions, kK, kRows };

struct SweepOptions {
  SweepOver over = SweepOver::kRate;
  std::vector<double> values;      // measured as they stand; empty: searched for
  double from = 10, to = 100'000;  // > 0; a search doubles from one up to the other
  int32_t refine = 2;              // times that it looks between the knee and its neighbours

  // INVALID_ARGUMENT that names flag, value and remedy.
  absl::Status Validate() const;
};

struct SweepPoint {
  double level = 0;
  double asked = 0;   // rounds a second that an open loop asked for; 0: closed
  double rounds = 0;  // a second, as all that follow
  double tokens = 0, rows = 0, goodput = 0;
  absl::Duration mean, p50, p99;  // of rounds, from the intended start
  absl::Duration prompt_mean;
  double accept_length = 0;  // bonus included
  double error_share = 0;
  bool within_budget = true, within_slo = true, tester_limited = false;

  bool KeepsUp() const;
};

// What the point is worth.
double Worth(const SweepPoint& point, SweepOver over);
// The rule in words, for reports.
const char* SweepRule(SweepOver over);
const char* SweepName(SweepOver over);

struct SweepResult {
  std::vector<SweepPoint> points;         // by level
  std::optional<size_t> knee;             // of points; empty when none keeps up
  std::optional<size_t> best_within_slo;  // the highest level that keeps up and within the SLO
};

// Measures one point. An error ends the sweep.
using SweepProbe = std::function<absl::StatusOr<SweepPoint>(double level)>;

// A search stops behind a point that does not keep up, or is worth less than half of the best one.
absl::StatusOr<SweepResult> RunSweep(const SweepOptions& options, const SweepProbe& probe);

}  // namespace aerie::loadtest
