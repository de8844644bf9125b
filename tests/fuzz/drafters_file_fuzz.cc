// Any text as the file of --drafters: it is refused with its name, or each drafter in it can be
// loaded by what is known of it, and no two have one name.
#include <cmath>
#include <cstdint>
#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "common/check.h"
#include "server/config/drafters_file.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto drafters = aerie::ParseDrafters(text, "/etc/drafters.json");
  if (!drafters.ok()) {
    const std::string message(drafters.status().message());
    AERIE_CHECK(message.find("/etc/drafters.json") != std::string::npos) << message;
    AERIE_CHECK(message.find("expected") != std::string::npos) << message;
    // Not the file itself.
    AERIE_CHECK(message.size() < 2000 || message.size() < text.size()) << message.size();
    return 0;
  }
  std::set<std::string> names;
  for (const aerie::DrafterOptions& drafter : *drafters) {
    AERIE_CHECK(drafter.Validate().ok());
    AERIE_CHECK(!drafter.name.empty() && names.insert(drafter.name).second) << drafter.name;
    AERIE_CHECK(!drafter.drafter.empty() && drafter.drafter[0] == '/') << drafter.drafter;
    AERIE_CHECK(!drafter.target.empty() && drafter.target[0] == '/') << drafter.target;
    AERIE_CHECK(std::isfinite(drafter.rope_theta.value_or(1.0)));
  }
  AERIE_CHECK(!names.empty());
  return 0;
}
