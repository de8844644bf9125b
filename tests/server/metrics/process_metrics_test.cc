#include "server/metrics/process_metrics.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ctime>
#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace aerie {
namespace {

// NaN, which equals nothing, when there is no such metric.
double Gauge(const std::string& name) {
  for (const auto& family : CollectProcessMetrics()) {
    if (family.name == name) return family.metric.at(0).gauge.value;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

TEST(ProcessMetricsTest, CountTheDescriptorsThatAreOpen) {
  const int extra = open("/dev/null", O_RDONLY);
  ASSERT_GE(extra, 0);
  // Asked one by one, without a descriptor for the asking.
  int open_ones = 0;
  for (int fd = 0; fd < 4096; ++fd) open_ones += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  EXPECT_EQ(Gauge("process_open_fds"), open_ones);
  close(extra);
  EXPECT_EQ(Gauge("process_open_fds"), open_ones - 1);
}

TEST(ProcessMetricsTest, TellTheLimitOfDescriptors) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(Gauge("process_max_fds"), static_cast<double>(limit.rlim_cur));
}

TEST(ProcessMetricsTest, SeeMemoryThatWasTouched) {
  constexpr size_t kBytes = 64 << 20;
  const double before = Gauge("process_resident_memory_bytes");
  EXPECT_GT(before, 1 << 20);
  const std::string touched(kBytes, 'x');
  EXPECT_GT(Gauge("process_resident_memory_bytes"), before + 0.9 * kBytes);
  EXPECT_GT(Gauge("process_virtual_memory_bytes"), Gauge("process_resident_memory_bytes"));
  EXPECT_EQ(touched[kBytes / 2], 'x');  // keeps it alive until here
}

TEST(ProcessMetricsTest, SeeCpuTimeInSeconds) {
  // The kernel's own clock of this process, read before and after, bounds it; a tick is a
  // hundredth.
  const auto clock_seconds = [] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
  while (clock_seconds() < 0.1) {
  }
  const double before = clock_seconds();
  double cpu = std::numeric_limits<double>::quiet_NaN();
  for (const auto& family : CollectProcessMetrics()) {
    if (family.name == "process_cpu_seconds_total") {
      EXPECT_EQ(family.type, prometheus::MetricType::Counter);
      cpu = family.metric.at(0).counter.value;
    }
  }
  EXPECT_GE(cpu, before - 0.05);
  EXPECT_LE(cpu, clock_seconds() + 0.05);
}

TEST(ProcessMetricsTest, StartedBeforeNowAndWithinTheLastDay) {
  const auto now = static_cast<double>(std::time(nullptr));
  EXPECT_LE(Gauge("process_start_time_seconds"), now + 1);
  EXPECT_GE(Gauge("process_start_time_seconds"), now - 24 * 3600);
}

}  // namespace
}  // namespace aerie
