// The file of --drafters: which drafters a server begins with, beside that of --drafter.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/config/options.h"

namespace aerie {

// A JSON list with an object for each drafter: name, drafter, target; and layer_id_convention,
// embedding_key, norm_before_residual (true, false), norm_output, rope_theta, ignore_config_key (a
// list) as far as they are wanted. INVALID_ARGUMENT that names the file and the place.
absl::StatusOr<std::vector<DrafterOptions>> ReadDraftersFile(const std::string& path);
// The same of its text. `path` is for messages, and where paths that are not absolute start.
absl::StatusOr<std::vector<DrafterOptions>> ParseDrafters(absl::string_view text,
                                                          const std::string& path);

}  // namespace aerie
