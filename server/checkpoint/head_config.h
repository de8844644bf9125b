// What a head's config.json and tensors say together: the effective settings of one drafter, each
// with its source.
//
// Labels in released configs are often wrong, so sizes come from tensor shapes and config.json is
// compared with them; what is neither in a tensor nor in config.json is a named default. Whatever
// changes the maths and is not done here is a complaint, never skipped.
#pragma once

#include <optional>
#include "absl/strings/string_view.h"

#include "absl/types/span.h"
#include "common/wiring.h"
#include "server/checkpoint/complaints.h"
#include "server/checkpoint/head_spec.h"
#include "server/checkpoint/safetensors.h"
#include "server/checkpoint/target_config.h"

namespace aerie {

struct HeadConfigOptions {
  // How layer ids in config.json are to be read. Unset: only the two standard lists are taken.
  std::optional<LayerIdConvention> layer_ids;
};

// Compares the text of the head's config.json with its tensors and the target. Adds a complaint for
// everything that contradicts, is missing or is not done here; what is returned is only good when
// none was added.
HeadSpec ResolveHeadSpec(absl::string_view config_json, absl::Span<const TensorSpan> tensors,
                         const TargetSpec& target, const HeadConfigOptions& options,
                         Complaints& complaints);

}  // namespace aerie
