// The commands of aerie-admin: each asks one thing of one server.
#pragma once

#include <string>

#include "client/admin/admin_flags.h"

namespace aerie::admin {

// The exit codes of the program, and what it prints.
enum ExitCode : int {
  kDone = 0,
  kNotServing = 1,
  kNotAsked = 2,     // bad command line, or the server cannot be asked
  kWiringWrong = 3,  // as aerie-verify's
  kWiringOpen = 4,
  kRefused = 5,  // a drafter was not loaded, reloaded or unloaded: nothing has changed
};

struct Outcome {
  ExitCode code = kDone;
  std::string out;  // for standard output
  std::string err;  // for standard error
};

// `options` that say what to do. Blocks up to the timeout.
Outcome Run(AdminOptions options);

}  // namespace aerie::admin
