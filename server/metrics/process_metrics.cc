#include "server/metrics/process_metrics.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/metrics/metric_names.h"

namespace aerie {
namespace {

std::optional<std::string> ReadFile(const char* path) {
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file || text.empty()) return std::nullopt;
  return text;
}

struct ProcStat {
  double cpu_seconds = 0, virtual_bytes = 0, resident_bytes = 0;
  double start_seconds = 0;  // since boot
};

std::optional<ProcStat> ReadProcStat() {
  const std::optional<std::string> text = ReadFile("/proc/self/stat");
  if (!text) return std::nullopt;
  // The second field is the program's name in brackets and may itself hold spaces and brackets.
  const size_t name_end = text->rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(*text).substr(name_end + 1), ' ', absl::SkipEmpty());
  // proc(5) numbers fields from 1; fields[0] is number 3.
  const auto field = [&fields](size_t number) -> double {
    int64_t value = 0;
    if (!absl::SimpleAtoi(fields.at(number - 3), &value)) return 0;
    return static_cast<double>(value);
  };
  if (fields.size() < 22) return std::nullopt;
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  return ProcStat{.cpu_seconds = (field(14) + field(15)) / ticks,
                  .virtual_bytes = field(23),
                  .resident_bytes = field(24) * static_cast<double>(sysconf(_SC_PAGESIZE)),
                  .start_seconds = field(22) / ticks};
}

// Seconds since the epoch.
std::optional<double> ReadBootTime() {
  const std::optional<std::string> text = ReadFile("/proc/stat");
  if (!text) return std::nullopt;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    int64_t seconds = 0;
    if (absl::ConsumePrefix(&line, "btime ") && absl::SimpleAtoi(line, &seconds)) {
      return static_cast<double>(seconds);
    }
  }
  return std::nullopt;
}

std::optional<double> CountOpenFds() {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return std::nullopt;
  int count = 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count - 3;  // ".", ".." and the descriptor of the folder itself
}

std::optional<double> ReadMaxFds() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  return static_cast<double>(limit.rlim_cur);
}

}  // namespace

std::vector<prometheus::MetricFamily> CollectProcessMetrics() {
  std::vector<prometheus::MetricFamily> families;
  const auto add = [&families](const MetricName& name, prometheus::MetricType type, double value) {
    prometheus::ClientMetric metric;
    metric.counter.value = value;
    metric.gauge.value = value;
    families.push_back({name.name, name.help, type, {metric}});
  };
  using prometheus::MetricType;
  if (const std::optional<ProcStat> stat = ReadProcStat()) {
    add(kProcessCpuSeconds, MetricType::Counter, stat->cpu_seconds);
    add(kProcessResidentMemory, MetricType::Gauge, stat->resident_bytes);
    add(kProcessVirtualMemory, MetricType::Gauge, stat->virtual_bytes);
    if (const std::optional<double> boot = ReadBootTime()) {
      add(kProcessStartTime, MetricType::Gauge, *boot + stat->start_seconds);
    }
  }
  if (const auto fds = CountOpenFds()) add(kProcessOpenFds, MetricType::Gauge, *fds);
  if (const auto fds = ReadMaxFds()) add(kProcessMaxFds, MetricType::Gauge, *fds);
  return families;
}

}  // namespace aerie
