// The lists of keys behind config_keys.h.
#pragma once

#include "absl/strings/string_view.h"

namespace aerie {

// A key that may hold only some values.
struct KeyRule {
  absl::string_view key;
  absl::string_view allowed;  // JSON texts between bars; empty: only absent or null
  absl::string_view meaning;  // of any other value
};

// Of the layer or the whole head, and of eagle_config; nullptr when there is no rule.
const KeyRule* FindKeyRule(absl::string_view name);
const KeyRule* FindEagleKeyRule(absl::string_view name);

// Keys that are read elsewhere: of the layer, of the whole head, of eagle_config.
bool IsLayerKey(absl::string_view name);
bool IsHeadKey(absl::string_view name);
bool IsEagleKey(absl::string_view name);

// Keys that change nothing in a pass.
bool IsHarmlessKey(absl::string_view name);

}  // namespace aerie
