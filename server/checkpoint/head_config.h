// What a head's config.json and tensors say together: the effective settings of one drafter, each
// with its source.
//
// Labels in released configs are often wrong, so sizes come from tensor shapes and config.json is
// compared with them; what is neither in a tensor nor in config.json is a named default. Whatever
// changes the maths and is not done here is a complaint, never skipped.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/wiring.h"
#include "server/checkpoint/complaints.h"
#include "server/checkpoint/head_spec.h"
#include "server/checkpoint/head_tensors.h"
#include "server/checkpoint/layer_ids.h"
#include "server/checkpoint/target_config.h"

namespace aerie {

// What an operator knows better than the files. Each shows as source "flag --...".
struct HeadConfigOptions {
  // How layer ids in config.json are to be read. Unset: only where it is unmistakable.
  std::optional<LayerIdConvention> layer_ids;
  std::optional<bool> norm_before_residual;
  std::optional<bool> norm_output;
  std::optional<double> rope_theta;
  // Keys of config.json to be taken as absent, "eagle_config.x" for one inside an object.
  std::vector<std::string> ignored_config_keys;
};

struct ResolvedHead {
  HeadSpec spec;
  WiringClaim wiring;
};

// Compares the text of the head's config.json with its tensors and the target. `target` may have
// unknown fields; what hangs on them is then left open without a complaint. `measured`: the wiring
// of a verified wiring.json, if there is one. Adds a complaint for everything that contradicts, is
// missing or is not done here; what is returned is only good when none was added.
ResolvedHead ResolveHead(absl::string_view config_json, const HeadTensors& tensors,
                         const TargetSpec& target, const std::optional<MeasuredWiring>& measured,
                         const HeadConfigOptions& options, Complaints& complaints);

}  // namespace aerie
