// Any bytes as the start of a safetensors file: the parser refuses them or describes tensors that
// lie within the file.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/check.h"
#include "common/safetensors/safetensors.h"

namespace {

void CheckEntries(std::string_view head, uint64_t file_size) {
  const auto entries = aerie::ParseSafetensorsHeader(head, file_size);
  if (!entries.ok()) {
    AERIE_CHECK(!entries.status().message().empty());
    return;
  }
  uint64_t covered = 0;
  for (const aerie::TensorEntry& entry : *entries) {
    AERIE_CHECK(entry.begin <= entry.end && entry.end <= file_size);
    AERIE_CHECK(entry.begin >= 8);
    uint64_t bytes = static_cast<uint64_t>(aerie::TensorTypeSize(entry.type));
    for (const int64_t extent : entry.shape) bytes *= static_cast<uint64_t>(extent);
    AERIE_CHECK(bytes == entry.end - entry.begin);
    covered += bytes;
  }
  AERIE_CHECK(covered <= file_size);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  CheckEntries(bytes, size);
  // A file with more behind the header than was read.
  CheckEntries(bytes, size + 4096);
  return 0;
}
