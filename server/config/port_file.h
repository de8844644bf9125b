// Tells scripts where the server listens, which they cannot know when they asked for port 0.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace aerie {

// {"grpc": ["127.0.0.1:41234", "unix:/run/aerie.sock"], "metrics": "127.0.0.1:9464"}; metrics is
// null when it is off (an empty `metrics`). Written beside `path` and renamed, so that a reader
// sees all of it or nothing. UNAVAILABLE when that fails.
absl::Status WritePortFile(const std::string& path, const std::vector<std::string>& grpc,
                           const std::string& metrics);

// So that nobody takes the addresses of an earlier run for ours. No file is fine.
absl::Status RemovePortFile(const std::string& path);

}  // namespace aerie
