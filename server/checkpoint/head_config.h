// What a head's config.json and tensors say together: the effective settings of one drafter, each
// with its source.
//
// Labels in released configs are often wrong, so sizes come from tensor shapes and config.json is
// compared with them; what is neither in a tensor nor in config.json is a named default. Whatever
// changes the maths and is not done here is a complaint, never skipped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include "absl/strings/string_view.h"

#include "absl/types/span.h"
#include "common/setting.h"
#include "common/wiring.h"
#include "server/checkpoint/complaints.h"
#include "server/checkpoint/safetensors.h"
#include "server/checkpoint/sourced.h"

namespace aerie {

// What the target's config.json says of the target.
struct TargetSpec {
  int32_t num_layers = 0;
  int32_t hidden_size = 0;
  int32_t vocab_size = 0;
};

// Half-split rotation of the whole head dimension: inv_freq_i = theta^(-2i / head_dim).
struct RopeSpec {
  Sourced<std::string> type;  // "default"
  Sourced<double> theta;
};

// Everything that the equations need, none of it optional.
struct HeadSpec {
  Sourced<int32_t> hidden_size;         // of the drafter
  Sourced<int32_t> target_hidden_size;  // of one capture
  Sourced<int32_t> intermediate_size;
  Sourced<int32_t> num_heads;
  Sourced<int32_t> num_kv_heads;  // divides num_heads
  Sourced<int32_t> head_dim;      // even; num_heads x head_dim need not be hidden_size
  Sourced<int32_t> vocab_size;    // of the target
  Sourced<int32_t> draft_vocab_size;
  Sourced<double> rms_norm_eps;
  RopeSpec rope;
  Sourced<Wiring> wiring;
  // Flags that hold one value here; recorded so that a reader sees them.
  std::vector<Setting> fixed;

  // All of the above in a fixed order.
  std::vector<Setting> Settings() const;
};

struct HeadConfigOptions {
  // How layer ids in config.json are to be read. Unset: only the two standard lists are taken.
  std::optional<LayerIdConvention> layer_ids;
};

// From the text of the target's config.json. nullopt with complaints when a field is missing or no
// positive integer.
std::optional<TargetSpec> ReadTargetSpec(absl::string_view config_json, Complaints& complaints);

// Compares the text of the head's config.json with its tensors and the target. Adds a complaint for
// everything that contradicts, is missing or is not done here; what is returned is only good when
// none was added.
HeadSpec ResolveHeadSpec(absl::string_view config_json, absl::Span<const TensorSpan> tensors,
                         const TargetSpec& target, const HeadConfigOptions& options,
                         Complaints& complaints);

}  // namespace aerie
