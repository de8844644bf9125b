// What has to be known of a target to read one of its heads.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "server/checkpoint/complaints.h"

namespace aerie {

// What the target's config.json says of the target.
struct TargetSpec {
  int32_t num_layers = 0;
  int32_t hidden_size = 0;
  int32_t vocab_size = 0;
};

// From the text of the target's config.json. nullopt with complaints when a field is missing or no
// positive integer.
std::optional<TargetSpec> ReadTargetSpec(absl::string_view config_json, Complaints& complaints);

}  // namespace aerie
