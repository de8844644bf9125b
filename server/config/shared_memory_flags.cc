// The flags of rows in shared memory, and what contradicts them.
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/config/flag_table_builder.h"
#include "server/config/options.h"

namespace aerie {

void AddSharedMemoryFlags(TableBuilder& table) {
  table.Group("Shared memory");
  table.Raw({.name = "shared-memory",
             .group = "",
             .value = "on|off",
             .help = "Let workers on this host, over Unix sockets and loopback, leave rows in "
                     "shared memory segments of theirs. Alone it means on; without it, off.",
             .default_text = "off",
             .may_stand_alone = true,
             .set = [](const std::vector<std::string>& texts, Options* options) -> absl::Status {
               AERIE_ASSIGN_OR_RETURN(options->shared_memory.enabled,
                                      ReadSwitch("shared-memory", texts.front()));
               return absl::OkStatus();
             }});
  table.Add("max-shared-memory-per-client", "BYTES",
            "Bytes of the segments of one client, 1MiB..1024GiB.", "256MiB", ReadBytes,
            [](Options& o) -> int64_t& { return o.shared_memory.max_bytes_per_client; });
  table.Int("max-shared-segments-per-client", "Segments of one client, 1..1024.",
            [](Options& o) -> int32_t& { return o.shared_memory.max_segments_per_client; });
}

absl::Status Options::CheckSharedMemory() const {
  if (shared_memory.enabled) return shared_memory.Validate();
  for (const auto& [name, flag] :
       {std::pair{"max_shared_memory_per_client", "--max-shared-memory-per-client"},
        std::pair{"max_shared_segments_per_client", "--max-shared-segments-per-client"}}) {
    if (!IsGiven(name)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(flag,
                     " is given but --shared-memory is off; expected it on; give --shared-memory, "
                     "or leave ",
                     flag, " out"));
  }
  return absl::OkStatus();
}

}  // namespace aerie
