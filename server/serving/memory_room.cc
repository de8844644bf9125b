#include "server/serving/memory_room.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/cgroups.h"

namespace aerie {
namespace {

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
  if (!absl::SimpleAtoi(ReadSystemFile(path), &value)) return std::nullopt;
  return value;
}

// Of one cgroup: its limit, what is used of it, and the part of that which is files that nobody has
// used of late.
void Narrow(MemoryRoom* room, const char* limit_file, const Cgroup& group, const char* usage_file,
            const char* idle_files) {
  const std::optional<int64_t> limit = ReadNumber(absl::StrCat(group.folder, "/", limit_file));
  const std::optional<int64_t> usage = ReadNumber(absl::StrCat(group.folder, "/", usage_file));
  if (!limit.has_value() || !usage.has_value()) return;
  const int64_t idle =
      Find(ReadSystemFile(absl::StrCat(group.folder, "/memory.stat")), idle_files).value_or(0);
  const int64_t used = std::max<int64_t>(0, *usage - idle);
  const int64_t bytes = std::max<int64_t>(0, *limit - used);
  if (bytes >= room->bytes) return;
  *room = {bytes, absl::StrCat(limit_file, " of the cgroup ", group.name)};
}

std::string MiB(int64_t bytes) {
  return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
}

}  // namespace

MemoryRoom FindMemoryRoom(const std::string& proc, const std::string& mount) {
  MemoryRoom room{std::numeric_limits<int64_t>::max(), "nothing known"};
  const std::optional<int64_t> available =
      Find(ReadSystemFile(absl::StrCat(proc, "/meminfo")), "MemAvailable:");
  if (available.has_value()) room = {*available * 1024, "MemAvailable of this machine"};
  const std::string membership = ReadSystemFile(absl::StrCat(proc, "/self/cgroup"));
  for (const Cgroup& group : CgroupsOf(mount, membership, "memory")) {
    if (group.v2) {
      Narrow(&room, "memory.max", group, "memory.current", "inactive_file");
    } else {
      Narrow(&room, "memory.limit_in_bytes", group, "memory.usage_in_bytes", "total_inactive_file");
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
