// Command line and environment -> Options.
//
// A flag beats its environment variable (AERIE_ and the flag's name in capitals: AERIE_MAX_K),
// which beats the default; every value in force is recorded with which of the three it came from.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/rpc/channel.h"
#include "server/config/options.h"

namespace aerie {

// What --probe asks, and how it is reached.
struct ProbeOptions {
  std::string address;
  rpc::ChannelFiles files;
};

struct Invocation {
  // Set by --help and --version: print it and leave; the options are not to be used.
  std::optional<std::string> print;
  // Set by --probe: ask that server for its health and leave; likewise.
  std::optional<ProbeOptions> probe;
  Options options;
};

// The value of an environment variable, when it is set. A parameter, so that tests need not change
// the process's.
using Environment = std::function<std::optional<std::string>(const std::string&)>;
Environment ProcessEnvironment();

// `arguments` without the program's name. INVALID_ARGUMENT that names flag, value and remedy: an
// unknown flag, a value that cannot be read, or options that are not valid.
absl::StatusOr<Invocation> ParseCommandLine(const std::vector<std::string>& arguments,
                                            const Environment& environment);

}  // namespace aerie
