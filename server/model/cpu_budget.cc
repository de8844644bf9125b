#include "server/model/cpu_budget.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/cgroups.h"

namespace aerie {
namespace {

// 0.4 ms of one core that reads its last-level cache or multiplies bfloat16, 2 to 3 ms of one that
// reads memory.
constexpr int64_t kWorkPerThread = 32 << 20;

std::optional<double> Smaller(std::optional<double> a, std::optional<double> b) {
  if (!a.has_value()) return b;
  if (!b.has_value()) return a;
  return std::min(*a, *b);
}

// cgroup v1 keeps the two numbers in files of their own; a quota of -1 is none.
std::optional<double> CpusFromV1(const std::string& folder) {
  const std::string quota = ReadSystemFile(absl::StrCat(folder, "/cpu.cfs_quota_us"));
  const std::string period = ReadSystemFile(absl::StrCat(folder, "/cpu.cfs_period_us"));
  return CpusFromCpuMax(absl::StrCat(absl::StripSuffix(quota, "\n"), " ", period));
}

}  // namespace

CpuBudget FindCpuBudget() {
  CpuBudget budget{static_cast<int32_t>(std::max(1u, std::thread::hardware_concurrency())),
                   "CPUs of the machine"};
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0 && CPU_COUNT(&allowed) > 0) {
    budget = {CPU_COUNT(&allowed), "CPU affinity"};
  }
  const auto quota = CgroupCpus("/sys/fs/cgroup", ReadSystemFile("/proc/self/cgroup"));
  if (quota.has_value() && *quota < budget.threads) {
    budget = {std::max(1, static_cast<int32_t>(std::floor(*quota))), "CPU quota of the cgroup"};
  }
  return budget;
}

int32_t ThreadsWorth(int64_t work, int32_t most) {
  const int64_t worth = (work + kWorkPerThread / 2) / kWorkPerThread;
  return static_cast<int32_t>(std::clamp<int64_t>(worth, 1, most));
}

CpuBudget ThreadsFor(int64_t step_bytes, CpuBudget budget) {
  const int32_t worth = ThreadsWorth(step_bytes, budget.threads);
  if (worth == budget.threads) return budget;
  return {worth, absl::StrCat(budget.source, " allows ", budget.threads,
                              ", one is used for each 32 MiB of weights of a step")};
}

std::optional<double> CpusFromCpuMax(absl::string_view text) {
  const std::vector<absl::string_view> parts =
      absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  int64_t quota = 0;
  int64_t period = 0;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &quota) ||
      !absl::SimpleAtoi(parts[1], &period) || quota <= 0 || period <= 0) {
    return std::nullopt;
  }
  return static_cast<double>(quota) / static_cast<double>(period);
}

std::optional<double> CgroupCpus(const std::string& mount, absl::string_view membership) {
  std::optional<double> cpus = CpusFromV1(absl::StrCat(mount, "/cpu"));
  for (const Cgroup& group : CgroupsOf(mount, membership, "cpu")) {
    if (!group.v2) continue;
    cpus = Smaller(cpus, CpusFromCpuMax(ReadSystemFile(absl::StrCat(group.folder, "/cpu.max"))));
  }
  return cpus;
}

std::optional<std::string> BFloat16Flag(absl::string_view cpuinfo) {
  for (const absl::string_view line : absl::StrSplit(cpuinfo, '\n')) {
    if (!absl::StartsWith(line, "flags")) continue;
    for (const absl::string_view flag :
         absl::StrSplit(line, absl::ByAnyChar(" \t:"), absl::SkipEmpty())) {
      if (flag == "avx512_bf16" || flag == "amx_bf16") return std::string(flag);
    }
    break;  // the other cores say the same
  }
  return std::nullopt;
}

std::optional<std::string> BFloat16Flag() { return BFloat16Flag(ReadSystemFile("/proc/cpuinfo")); }

}  // namespace aerie
