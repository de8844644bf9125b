// The control groups that this process is in, and small text files of the kernel.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace aerie {

// Empty when the file is not there: files of the kernel differ between systems.
std::string ReadSystemFile(const std::string& path);

struct Cgroup {
  bool v2 = false;
  std::string folder;  // where its files are
  std::string name;    // "/" or "/a/b"
};

// From the root of a hierarchy down: a container sees its own as the root, and a limit of any of
// them holds. `mount`: /sys/fs/cgroup; `membership`: the text of /proc/self/cgroup; `controller`:
// whose hierarchy counts where each has its own (v1).
std::vector<Cgroup> CgroupsOf(const std::string& mount, absl::string_view membership,
                              absl::string_view controller);

}  // namespace aerie
