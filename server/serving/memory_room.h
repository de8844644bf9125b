// How much memory a load may take beside what serves: looked at before it is taken, since
// afterwards the kernel ends the process and with it every session.
//
// What one would get wrong: in a container the machine's free memory is the wrong number, and so is
// the container's limit less what it uses, since part of that is files that the kernel lets go of.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"

namespace aerie {

struct MemoryRoom {
  int64_t bytes = 0;
  std::string source;  // "MemAvailable of this machine", "memory.max of the cgroup /aerie.slice"
};

// The smallest of the machine's and of the cgroups' between the root and the process's own. What
// cannot be read limits nothing. `proc`: /proc; `mount`: /sys/fs/cgroup.
MemoryRoom FindMemoryRoom(const std::string& proc, const std::string& mount);

// What a load is about to take.
struct MemoryNeed {
  int64_t weights = 0;   // bytes, in the type that computes
  int64_t draft_kv = 0;  // bytes, when all of it is in use
};

// Asked by whoever loads, once what it will take is known and before it is taken.
using MemoryCheck = std::function<absl::Status(const MemoryNeed&)>;

// RESOURCE_EXHAUSTED, with the numbers, when drafter `name` does not fit.
absl::Status CheckMemory(const std::string& name, const MemoryNeed& need, const MemoryRoom& room);

}  // namespace aerie
