// Facts about the machine that a figure was measured on.
#pragma once

#include <cstdint>
#include <string>

namespace aerie::loadtest {

struct HostFacts {
  std::string system;  // kernel and architecture
  std::string cpu;     // model name, empty where unknown
  int cpus = 0;        // that this process may use
  int64_t memory_bytes = 0;
};

HostFacts ReadHostFacts();

}  // namespace aerie::loadtest
