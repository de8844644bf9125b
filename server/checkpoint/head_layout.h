// Whose spelling a head's files have.
//
// Class names are no guide: several producers write the same one and some write a plain model's. So
// the layout is told by keys that one producer alone writes, and decides defaults only.
#pragma once

#include <optional>
#include <string>

#include "common/wiring.h"
#include "server/checkpoint/config_view.h"
#include "server/checkpoint/head_tensors.h"
#include "server/checkpoint/sourced.h"

namespace aerie {

struct HeadLayout {
  Sourced<std::string> name;  // "speculators"
  // In front of the keys of the layer: kLayerObject of config_keys.h, or nothing.
  std::string layer;
  // Unset: the value must be stated, since serving engines and the trainer differ.
  std::optional<bool> norm_before_residual;
  // Set when every file of this layout numbers layers in one way.
  std::optional<LayerIdConvention> layer_ids;
};

HeadLayout TellLayout(const ConfigView& config, const HeadTensors& tensors);

}  // namespace aerie
