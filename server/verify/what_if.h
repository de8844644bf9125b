// Settings in which a head may have been read wrongly: each flipped by itself.
//
// They come second: a wrong wiring costs more, and one that is right shows a wrong setting best.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/checkpoint/checkpoint.h"
#include "server/verify/target_tables.h"

namespace aerie {

struct SettingVariant {
  std::string setting;
  std::string declared;       // in force
  std::string value;          // tried
  CheckpointOptions options;  // that load the head so
  std::string why_not;        // not empty: it cannot be tried
};

// `options`: with which `checkpoint` was loaded. `target_rope_theta`: of the target's config.json.
std::vector<SettingVariant> SettingVariants(const Checkpoint& checkpoint,
                                            const CheckpointOptions& options,
                                            std::optional<double> target_rope_theta);

}  // namespace aerie
