// The command line of aerie-inspect. Flags that change how a head is read have the names that
// aerie-server gives them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/checkpoint/checkpoint.h"

namespace aerie {

struct InspectOptions {
  std::optional<std::string> print;  // of --help: print it and leave
  std::string drafter;
  std::string target;  // empty: none
  bool json = false;
  double gigabytes_per_second = 20.0;  // > 0
  CheckpointOptions checkpoint;
};

// `arguments` without the program's name. INVALID_ARGUMENT that names flag, value and remedy.
absl::StatusOr<InspectOptions> ParseInspectFlags(const std::vector<std::string>& arguments);

}  // namespace aerie
