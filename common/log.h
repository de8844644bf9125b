// The program's log: one line an event on standard error.
//
//   AERIE_LOG(info, "listening on {}", address);      levels: debug, info, warn, error
#pragma once

#include <string>

#include "absl/status/status.h"
#include "spdlog/spdlog.h"

#define AERIE_LOG(level, ...) ::spdlog::level(__VA_ARGS__)

namespace aerie {

// Sets up the format and the level ("debug", "info", "warn", "error", "off"). INVALID_ARGUMENT for
// another word. May be called again to change the level of a running process, from any thread.
absl::Status SetUpLog(const std::string& level);

}  // namespace aerie
