// Any text as an index of shards: it is refused, or names plain files only.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/check.h"
#include "server/checkpoint/shard_index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto shards = aerie::ParseShardIndex(text, "index.json");
  if (!shards.ok()) return 0;
  AERIE_CHECK(!shards->empty());
  for (const auto& [tensor, shard] : *shards) {
    AERIE_CHECK(!shard.empty() && shard != "." && shard != "..");
    AERIE_CHECK(shard.find('/') == std::string::npos);
  }
  return 0;
}
