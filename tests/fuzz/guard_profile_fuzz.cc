// Any text as a profile of the live guard: it is refused, or sound, and can be written and read
// again.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/check.h"
#include "server/guard/guard_profile_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto profile = aerie::GuardProfileFromJson(text);
  if (!profile.ok()) return 0;
  AERIE_CHECK(profile->Validate().ok());
  AERIE_CHECK(aerie::GuardProfileFromJson(aerie::GuardProfileToJson(*profile)).ok());
  return 0;
}
