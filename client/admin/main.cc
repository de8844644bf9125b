// aerie-admin: asks a running server how it is, and tells it what to log and what to draft with.
//
// Exit codes: see ExitCode in admin_commands.h.
#include <cstdio>
#include <string>
#include <vector>

#include "client/admin/admin_commands.h"
#include "client/admin/admin_flags.h"

int main(int argc, char** argv) {
  using namespace aerie::admin;  // NOLINT: it is all that this file is about
  const auto options = ParseAdminFlags(std::vector<std::string>(argv + 1, argv + argc));
  if (!options.ok()) {
    std::fprintf(stderr, "aerie-admin: %s\n", std::string(options.status().message()).c_str());
    return kNotAsked;
  }
  if (options->print.has_value()) {
    std::fputs(options->print->c_str(), stdout);
    return kDone;
  }
  const Outcome outcome = Run(*options);
  std::fputs(outcome.out.c_str(), stdout);
  if (!outcome.err.empty()) std::fprintf(stderr, "aerie-admin: %s", outcome.err.c_str());
  return outcome.code;
}
