#include "client/loadtest/host.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/loadtest/cpu_time.h"

namespace aerie::loadtest {
namespace {

std::string CpuModel() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, "model name")) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

}  // namespace

HostFacts ReadHostFacts() {
  HostFacts facts;
  utsname name = {};
  if (uname(&name) == 0)
    facts.system = absl::StrCat(name.sysname, " ", name.release, " ", name.machine);
  facts.cpu = CpuModel();
  facts.cpus = ProcessorCount();
  facts.memory_bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * int64_t{sysconf(_SC_PAGE_SIZE)};
  return facts;
}

}  // namespace aerie::loadtest
