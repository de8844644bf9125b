// The command line of aerie-admin.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "aerie/v1/admin.pb.h"
#include "common/rpc/channel.h"

namespace aerie::admin {

enum class Command { kHealth, kInfo, kWiring, kLogLevel, kDrafters, kLoad, kReload, kUnload };

struct AdminOptions {
  std::optional<std::string> print;  // set by --help and --version: print it and leave

  Command command = Command::kHealth;
  std::string address = "127.0.0.1:50051";        // of DraftService: health, info
  std::string admin_address = "127.0.0.1:50052";  // of AdminService: all other commands
  absl::Duration timeout = absl::Seconds(5);      // of the whole command, > 0; see --help
  bool json = false;
  rpc::ChannelFiles files;      // TLS and token
  rpc::ChannelSecrets secrets;  // what was read from these; the commands' own
  std::string client;           // wiring: only its reports; empty: all
  std::string level;            // log-level: to be set; empty: only asked for
  std::string name;             // load, reload, unload: of the drafter; empty: the only one
  v1::DrafterSource source;     // load, reload: what was given, without the name
};

// `arguments` without the program's name. INVALID_ARGUMENT names what cannot be read.
absl::StatusOr<AdminOptions> ParseAdminFlags(const std::vector<std::string>& arguments);

}  // namespace aerie::admin
