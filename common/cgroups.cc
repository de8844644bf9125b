#include "common/cgroups.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace aerie {

std::string ReadSystemFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<Cgroup> CgroupsOf(const std::string& mount, absl::string_view membership,
                              absl::string_view controller) {
  std::vector<Cgroup> out;
  for (const absl::string_view line : absl::StrSplit(membership, '\n')) {
    // "0::/a/b" is v2, "4:cpu,cpuacct:/a/b" v1.
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const bool v2 = parts[0] == "0" && parts[1].empty();
    const std::vector<absl::string_view> controllers = absl::StrSplit(parts[1], ',');
    if (!v2 && std::find(controllers.begin(), controllers.end(), controller) == controllers.end()) {
      continue;
    }
    Cgroup group{v2, v2 ? mount : absl::StrCat(mount, "/", controller), "/"};
    out.push_back(group);
    for (const absl::string_view part : absl::StrSplit(parts[2], '/', absl::SkipEmpty())) {
      absl::StrAppend(&group.folder, "/", part);
      absl::StrAppend(&group.name, group.name == "/" ? "" : "/", part);
      out.push_back(group);
    }
  }
  return out;
}

}  // namespace aerie
