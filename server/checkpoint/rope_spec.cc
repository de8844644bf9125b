#include "server/checkpoint/rope_spec.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace aerie {

absl::string_view RopeTypeName(RopeType type) {
  switch (type) {
    case RopeType::kDefault:
      return "default";
    case RopeType::kLinear:
      return "linear";
    case RopeType::kDynamic:
      return "dynamic";
    case RopeType::kLlama3:
      return "llama3";
    case RopeType::kYarn:
      return "yarn";
  }
  return "";
}

std::vector<Setting> RopeSpec::Settings() const {
  std::vector<Setting> settings;
  const auto add = [&settings](std::string name, const auto& sourced) {
    settings.push_back({std::move(name), absl::StrCat(sourced.value), sourced.source});
  };
  const auto add_switch = [&settings](std::string name, const Sourced<bool>& sourced) {
    settings.push_back({std::move(name), sourced.value ? "true" : "false", sourced.source});
  };
  settings.push_back({"rope_type", std::string(RopeTypeName(type.value)), type.source});
  add("rope_theta", theta);
  add("rope_dims", dims);
  add_switch("rope_interleaved", interleaved);
  if (type.value != RopeType::kDefault) add("rope_factor", factor);
  if (type.value != RopeType::kDefault && type.value != RopeType::kLinear) {
    add("rope_original_max_positions", original_max_positions);
  }
  if (type.value == RopeType::kLlama3) {
    add("rope_low_freq_factor", low_freq_factor);
    add("rope_high_freq_factor", high_freq_factor);
  }
  if (type.value == RopeType::kYarn) {
    add("rope_beta_fast", beta_fast);
    add("rope_beta_slow", beta_slow);
    add_switch("rope_truncate", truncate);
    add("rope_amplitude", amplitude);
  }
  return settings;
}

}  // namespace aerie
