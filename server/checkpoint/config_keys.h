// Every key that a head's config.json may have.
//
// A key that is not known may change the maths, so it stops the load: what goes unread makes a head
// draft badly and says nothing. The lists here are what "known" means: keys that change nothing,
// keys that are read elsewhere, and keys that may hold only one value.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/setting.h"
#include "server/checkpoint/config_view.h"

namespace aerie {

// The object that speculators puts a layer's settings in, with the dot behind it.
inline constexpr char kLayerObject[] = "transformer_layer_config.";

struct ConfigContext {
  std::string layer;  // in front of the keys of the layer: "" or kLayerObject
  int32_t num_layers = 1;
  bool latent = false;
};

// Complains of every key that is not known, and of every one that asks for something that is not
// done here. Returns the settings that a reader should see although they hold one value only.
std::vector<Setting> CheckConfigKeys(const ConfigView& config, const ConfigContext& context);

}  // namespace aerie
