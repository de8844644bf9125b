// The command line of aerie-admin.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/channel.h"

namespace aerie::admin {

enum class Command { kHealth, kInfo, kWiring, kLogLevel };

struct AdminOptions {
  std::optional<std::string> print;  // set by --help and --version: print it and leave

  Command command = Command::kHealth;
  std::string address = "127.0.0.1:50051";        // of DraftService: health, info
  std::string admin_address = "127.0.0.1:50052";  // of AdminService: wiring, log-level
  absl::Duration timeout = absl::Seconds(5);      // of the whole command; > 0
  bool json = false;
  rpc::ChannelFiles files;  // TLS and token
  std::string client;       // wiring: only its reports; empty: all
  std::string level;        // log-level: to be set; empty: only asked for
};

// `arguments` without the program's name. INVALID_ARGUMENT names what cannot be read.
absl::StatusOr<AdminOptions> ParseAdminFlags(const std::vector<std::string>& arguments);

}  // namespace aerie::admin
