// --probe and what stands beside it: asking a server for its health instead of being one.
//
// What one would get wrong: --tls-cert, --tls-key and --token-file are the server's files elsewhere
// and the asking client's beside --probe, as with every client. Variables of the environment count
// for nothing here: a container's probe runs in the environment of its server.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "server/config/flags.h"

namespace aerie {

class ProbeFlags {
 public:
  // Adds them to `app`, which must not outlive this.
  explicit ProbeFlags(CLI::App* app);

  // Once `app` has parsed: what is to be probed; empty: nothing is. `given`: the texts of each
  // other flag. INVALID_ARGUMENT: a flag of a server beside --probe, or one of --probe without it.
  absl::StatusOr<std::optional<ProbeOptions>> Read(
      const std::map<std::string, std::vector<std::string>>& given) const;

 private:
  ProbeOptions options_;
  CLI::Option* probe_;  // the app's
};

}  // namespace aerie
