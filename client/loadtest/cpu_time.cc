#include "client/loadtest/cpu_time.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace aerie::loadtest {

CpuTimes ReadCpuTimes() {
  CpuTimes times;
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  times.own = absl::DurationFromTimeval(usage.ru_utime) + absl::DurationFromTimeval(usage.ru_stime);
  std::ifstream file("/proc/stat");
  std::string word;
  file >> word;  // "cpu": user nice system idle iowait irq softirq steal; what follows is in user
  const double tick = 1.0 / static_cast<double>(std::max(1L, sysconf(_SC_CLK_TCK)));
  double ticks = 0;
  for (int field = 0; field < 8 && file >> ticks; ++field) {
    const absl::Duration time = absl::Seconds(ticks * tick);
    times.machine_all += time;
    if (field != 3 && field != 4) times.machine_busy += time;
  }
  return times;
}

int ProcessorCount() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return 1;
  return std::max(1, CPU_COUNT(&allowed));
}

}  // namespace aerie::loadtest
