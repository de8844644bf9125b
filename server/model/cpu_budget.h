// What the CPU offers this process: how many threads are worth starting, and which number types it
// multiplies.
//
// The machine's core count is the wrong number inside a container: its quota is a share of time,
// and threads above it are stopped in the middle of a pass.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace aerie {

struct CpuBudget {
  int32_t threads = 1;
  std::string source;  // "CPU affinity", "CPU quota of the cgroup"
};

// From the affinity of the calling thread and the cgroup's quota; at least 1.
CpuBudget FindCpuBudget();

// How many of at most `most` threads a pass should use that reads `work` bytes or makes `work`
// products of a number with a number, whichever is more: a core does about as many of either in a
// second. A pass is a chain of small pieces between which threads wait for each other, so a small
// one gains little by more of them and loses much when the CPUs have other work: a target's worker
// on the same machine.
int32_t ThreadsWorth(int64_t work, int32_t most);

// The same, once and for all passes, of a drafter whose step reads `step_bytes` of weights.
CpuBudget ThreadsFor(int64_t step_bytes, CpuBudget budget);

// CPUs that a cgroup v2 `cpu.max` allows: "150000 100000" is 1.5. nullopt for "max ..." and for
// anything malformed.
std::optional<double> CpusFromCpuMax(absl::string_view text);

// The smallest quota between the root and the process's own cgroup. `mount`: /sys/fs/cgroup;
// `membership`: the text of /proc/self/cgroup.
std::optional<double> CgroupCpus(const std::string& mount, absl::string_view membership);

// The flag of /proc/cpuinfo that promises bfloat16 products: "avx512_bf16" or "amx_bf16"; nullopt
// without one.
std::optional<std::string> BFloat16Flag(absl::string_view cpuinfo);
// Of this machine.
std::optional<std::string> BFloat16Flag();

}  // namespace aerie
