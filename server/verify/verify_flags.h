// The command line of aerie-verify. Flags that change how a head is read have the names that
// aerie-server gives them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/checkpoint/checkpoint.h"
#include "server/verify/verify.h"

namespace aerie {

struct VerifyFlags {
  std::optional<std::string> print;  // of --help: print it and leave
  std::string drafter, captures, target;
  std::optional<std::string> json;  // a file; empty: standard output, in place of the table
  std::string html;                 // a file; empty: none
  bool write_wiring = false;
  bool what_if = true;
  int32_t threads = 0;  // 0: found
  CheckpointOptions checkpoint;
  VerifyOptions options;
};

// `arguments` without the program's name. INVALID_ARGUMENT that names flag, value and remedy.
absl::StatusOr<VerifyFlags> ParseVerifyFlags(const std::vector<std::string>& arguments);

}  // namespace aerie
