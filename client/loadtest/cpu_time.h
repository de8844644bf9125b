// How busy this process and this machine are: a tester that runs short of processors measures
// itself.
#pragma once

#include "absl/time/time.h"

namespace aerie::loadtest {

// Since they started. Of the machine: over all its processors, as the system counts them.
struct CpuTimes {
  absl::Duration own;
  absl::Duration machine_busy, machine_all;  // zero where the system does not tell
};

CpuTimes ReadCpuTimes();

// That this process may run on; at least 1.
int ProcessorCount();

}  // namespace aerie::loadtest
