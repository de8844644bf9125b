// The command `aerie-verify match A B`.
#pragma once

#include <string>
#include <vector>

namespace aerie {

struct CommandOutput {
  int exit_code = 0;
  std::string out, err;  // for standard output and standard error
};

// `arguments` without program and command names. Exit codes of MatchExitCode(), and 1: the command
// line cannot be read, 2: a recording cannot be.
CommandOutput RunMatch(const std::vector<std::string>& arguments);

}  // namespace aerie
