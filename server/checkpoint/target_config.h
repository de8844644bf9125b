// What has to be known of a target to read one of its heads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/checkpoint/complaints.h"

namespace aerie {

// What the target's config.json says of the target. 0 stands for unknown: no target was given.
struct TargetSpec {
  int32_t num_layers = 0;
  int32_t hidden_size = 0;
  int32_t vocab_size = 0;
  bool ties_embeddings = false;  // its output matrix is its embedding; only when it says so

  bool known() const { return num_layers > 0; }
};

// From the text of the target's config.json. nullopt with complaints when a field is missing or no
// positive integer.
std::optional<TargetSpec> ReadTargetSpec(absl::string_view config_json, Complaints& complaints);

}  // namespace aerie
