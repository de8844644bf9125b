#include "server/serving/memory_room.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace aerie {
namespace {

// Empty when the file is not there: files of the kernel differ between systems.
std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The number behind `key` at the beginning of a line.
std::optional<int64_t> Find(absl::string_view text, absl::string_view key) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    int64_t value = 0;
    if (words.size() >= 2 && words[0] == key && absl::SimpleAtoi(words[1], &value)) return value;
  }
  return std::nullopt;
}

std::optional<int64_t> ReadNumber(const std::string& path) {
  int64_t value = 0;
  // "max" is no number, and no limit.
  if (!absl::SimpleAtoi(ReadText(path), &value)) return std::nullopt;
  return value;
}

// Of one cgroup: its limit, what is used of it, and the part of that which is files that nobody has
// used of late.
void Narrow(MemoryRoom* room, const char* limit_file, const std::string& folder,
            const char* usage_file, const char* idle_files, const std::string& group) {
  const std::optional<int64_t> limit = ReadNumber(absl::StrCat(folder, "/", limit_file));
  const std::optional<int64_t> usage = ReadNumber(absl::StrCat(folder, "/", usage_file));
  if (!limit.has_value() || !usage.has_value()) return;
  const int64_t idle = Find(ReadText(absl::StrCat(folder, "/memory.stat")), idle_files).value_or(0);
  const int64_t used = std::max<int64_t>(0, *usage - idle);
  const int64_t bytes = std::max<int64_t>(0, *limit - used);
  if (bytes >= room->bytes) return;
  *room = {bytes, absl::StrCat(limit_file, " of the cgroup ", group)};
}

std::string MiB(int64_t bytes) {
  return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
}

}  // namespace

MemoryRoom FindMemoryRoom(const std::string& proc, const std::string& mount) {
  MemoryRoom room{std::numeric_limits<int64_t>::max(), "nothing known"};
  const std::optional<int64_t> available =
      Find(ReadText(absl::StrCat(proc, "/meminfo")), "MemAvailable:");
  if (available.has_value()) room = {*available * 1024, "MemAvailable of this machine"};
  for (const absl::string_view line :
       absl::StrSplit(ReadText(absl::StrCat(proc, "/self/cgroup")), '\n')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const bool v2 = parts[0] == "0" && parts[1].empty();
    const std::vector<absl::string_view> controllers = absl::StrSplit(parts[1], ',');
    if (!v2 && std::find(controllers.begin(), controllers.end(), "memory") == controllers.end()) {
      continue;
    }
    // From the root down: a container sees its own as the root, and a limit of any of them holds.
    std::string folder = v2 ? mount : absl::StrCat(mount, "/memory");
    std::string group = "/";
    std::vector<absl::string_view> path = absl::StrSplit(parts[2], '/', absl::SkipEmpty());
    for (size_t depth = 0; depth <= path.size(); ++depth) {
      if (depth > 0) {
        absl::StrAppend(&folder, "/", path[depth - 1]);
        absl::StrAppend(&group, depth > 1 ? "/" : "", path[depth - 1]);
      }
      if (v2) {
        Narrow(&room, "memory.max", folder, "memory.current", "inactive_file", group);
      } else {
        Narrow(&room, "memory.limit_in_bytes", folder, "memory.usage_in_bytes",
               "total_inactive_file", group);
      }
    }
  }
  return room;
}

absl::Status CheckMemory(const std::string& name, const MemoryNeed& need, const MemoryRoom& room) {
  // Each is far below what a sum would overflow by: sizes of files and of a store that is reserved.
  const int64_t bytes = need.weights + need.draft_kv;
  if (bytes <= room.bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "drafter ", name, " takes ", MiB(bytes), " (weights ", MiB(need.weights), ", draft KV ",
      MiB(need.draft_kv), ") and there are ", MiB(room.bytes), " (", room.source,
      "); expected room for it beside what serves, which goes on; give the server more memory or "
      "less --kv-memory, unload a drafter first, or put the new head into a server that is started "
      "anew"));
}

}  // namespace aerie
