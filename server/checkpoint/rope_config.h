// The rotation of a head, from any of the spellings of config.json.
//
// It stands in `rope_scaling` with `rope_theta` beside it, or in `rope_parameters` with everything
// inside, or in both; the kind is called `rope_type` or `type`. Two places that differ are refused:
// nothing says which of them the head was trained with.
#pragma once

#include <cstdint>
#include <optional>

#include "server/checkpoint/config_keys.h"
#include "server/checkpoint/config_view.h"
#include "server/checkpoint/rope_spec.h"

namespace aerie {

struct RopeQuestion {
  ConfigContext context;
  int32_t width = 0;  // of the part of a head that may turn; 0: in doubt
  std::optional<double> theta_flag;
};

RopeSpec ReadRope(const ConfigView& config, const RopeQuestion& question);

// What latent attention multiplies its softmax scale with, besides head_dim^-0.5: the square of
// yarn's magnitude at mscale_all_dim; 1 without.
Sourced<double> LatentScaleFactor(const ConfigView& config, const ConfigContext& context,
                                  const RopeSpec& rope);

}  // namespace aerie
