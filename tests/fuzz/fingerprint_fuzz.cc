// Any text as a fingerprint: it is refused, or a row can be compared with it.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/check.h"
#include "server/recording/fingerprint_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto read =
      aerie::FingerprintFromJson(absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!read.ok()) return 0;
  aerie::FingerprintCounter counter(*read);
  counter.Add(std::vector<float>(static_cast<size_t>(read->width), 1.0f));
  const double distance = counter.Distance();
  AERIE_CHECK(distance >= 0 && distance <= 1) << distance;
  return 0;
}
