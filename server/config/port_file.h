// Tells scripts where the server listens, which they cannot know when they asked for port 0.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace aerie {

struct BoundAddresses {
  std::vector<std::string> grpc;
  std::string metrics, admin;  // empty: off
};

// {"admin": null, "grpc": ["127.0.0.1:41234", "unix:/run/aerie.sock"], "metrics":
// "127.0.0.1:9464"}; null: off. Written beside `path` and renamed, so that a reader sees all of it
// or nothing. UNAVAILABLE when that fails.
absl::Status WritePortFile(const std::string& path, const BoundAddresses& addresses);

// So that nobody takes the addresses of an earlier run for ours. No file is fine.
absl::Status RemovePortFile(const std::string& path);

}  // namespace aerie
