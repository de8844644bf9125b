// What a run gave: sums, and how it went second by second.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/loadtest/stats.h"

namespace aerie::loadtest {

// One second or so of a run, warm-up and drain included. Latencies are of rounds that ended in it.
struct Interval {
  absl::Duration begin, length;  // from the start of the run
  bool steady = false;           // it lies within the measured window as a whole
  double asked = 0;              // rounds that an open loop meant to start; 0 of a closed one
  int64_t rounds = 0;            // ended, well or not
  int64_t errors = 0;
  int32_t in_flight = 0;  // at its end
  int64_t tokens = 0, bytes = 0;
  double accept_length = 0;           // bonus included; 0 without a draft
  absl::Duration p50, p90, p99, max;  // from the intended start
  absl::Duration send_p99;            // from the send

  double PerSecond(double count) const {
    return length > absl::ZeroDuration() ? count / absl::ToDoubleSeconds(length) : 0.0;
  }
};

struct RunResult {
  MeasuredStats measured;
  WholeStats whole;
  absl::Time started;
  absl::Duration ran;                    // from the first session to the last one's end
  absl::Duration window_begin, seconds;  // the measured window: its start and its length
  int64_t asked_rounds = 0;              // in the window; 0 of a closed loop
  absl::Duration tester_cpu;             // during the run
  double tester_cpu_share = 0;           // of all processors, during the run
  double machine_busy_share = 0;         // of all processors, by anybody
  std::vector<Interval> intervals;
  std::string hdr_log;
};

}  // namespace aerie::loadtest
