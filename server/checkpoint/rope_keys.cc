#include "server/checkpoint/rope_keys.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace aerie {

std::vector<std::string> RopeKeys::Places(absl::string_view name) const {
  std::vector<std::string> keys;
  if (name == "rope_theta" || name == "partial_rotary_factor") {
    keys.push_back(absl::StrCat(prefix_, name));
  }
  for (const absl::string_view object : kRopeObjects) {
    keys.push_back(absl::StrCat(prefix_, object, ".", name));
  }
  return keys;
}

std::optional<Sourced<double>> RopeKeys::Number(absl::string_view name) const {
  std::optional<Sourced<double>> found;
  for (const std::string& key : Places(name)) {
    const auto value = config_.Number(key);
    if (!value.has_value()) continue;
    if (!found.has_value()) {
      found = {*value, config_.SourceOf(key)};
    } else if (found->value != *value) {
      Differ(key, found->source, absl::StrCat(found->value));
    }
  }
  return found;
}

Sourced<double> RopeKeys::Required(absl::string_view name) const {
  const auto value = Number(name);
  if (!value.has_value()) {
    config_.complaints().Add(absl::StrCat("config.json has no ", prefix_, "rope_scaling.", name,
                                          ", which the type of rotation needs; expected a number; "
                                          "fetch the file again"));
    return {};
  }
  if (!(value->value > 0.0) || !std::isfinite(value->value)) {
    OutOfRange(*value, "a number above 0");
  }
  return *value;
}

Sourced<int32_t> RopeKeys::AsLength(const Sourced<double>& value) const {
  if (value.source.empty()) return {};
  if (!(value.value >= 1.0 && value.value <= 2147483647.0) ||
      value.value != std::floor(value.value)) {
    OutOfRange(value, "a whole number of positions");
    return {1, value.source};
  }
  return {static_cast<int32_t>(value.value), value.source};
}

void RopeKeys::Differ(const std::string& key, const std::string& source,
                      const std::string& text) const {
  config_.complaints().Add(
      absl::StrCat(config_.SourceOf(key), " is ", config_.Text(key), " but ", source, " is ", text,
                   "; expected the same; remove the one with which the head was not trained"));
}

void RopeKeys::Refuse(const std::string& key, absl::string_view meaning,
                      absl::string_view expected) const {
  config_.complaints().Add(
      absl::StrCat(config_.SourceOf(key), " = ", config_.Text(key), " asks for ", meaning,
                   ", which is not done here; expected ", expected, "; use a head without it"));
}

void RopeKeys::OutOfRange(const Sourced<double>& value, absl::string_view expected) const {
  config_.complaints().Add(
      absl::StrCat(value.source, " is ", value.value, "; expected ", expected, "; put it right"));
}

}  // namespace aerie
