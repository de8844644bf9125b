// All that can be set of the server, one struct a part, and where each value came from.
//
// The structs say what is valid: Validate() names flag, value and remedy. Reading them from flags
// and environment is flags.h's business.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/setting.h"
#include "common/wiring.h"
#include "common/wiring_report.h"
#include "server/engine/draft_engine.h"
#include "server/request_log/request_log.h"
#include "server/transport/client_limits.h"
#include "server/transport/grpc_server.h"
#include "server/transport/shared_memory_book.h"

namespace aerie {

// Which drafter is served.
struct DrafterOptions {
  std::string drafter;  // folder of the checkpoint
  std::string target;   // folder of the target, of which config.json and the embedding are read
  std::string name;     // what the drafter is called; empty: the name of its folder
  // How layer ids in the checkpoint are to be read; unset: only where they are unmistakable.
  std::optional<LayerIdConvention> layer_ids;
  // The target's tensor that is its token embedding; empty: found by its suffix.
  std::string embedding_key;
  // Beat what the checkpoint says or leaves out.
  std::optional<bool> norm_before_residual, norm_output;
  std::optional<double> rope_theta;
  std::vector<std::string> ignored_config_keys;  // to be taken as absent

  absl::Status Validate() const;
};

// What computes.
struct ComputeOptions {
  std::string device = "cpu";
  std::string dtype = "auto";  // auto, float32, bfloat16, int8, fp8
  int32_t threads = 0;         // 0: what affinity and the cgroup's CPU quota allow

  absl::Status Validate() const;
};

// The store of draft KV.
struct KvOptions {
  int64_t memory_bytes = int64_t{1} << 30;  // of all sessions together; >= 1 MiB
  int32_t page_rows = 16;                   // of one page, 1..1024

  absl::Status Validate() const;
};

// With a token file the page asks for the role metrics.
struct MetricsOptions {
  std::string listen = "127.0.0.1:9464";  // host:port; "off": no metrics page
  bool tls = false;                       // over HTTPS, with the files of the gRPC listeners

  bool enabled() const { return listen != "off"; }
  // What of `all` guards the page.
  SecurityOptions SecurityOf(const SecurityOptions& all) const;
  // `security`: all that is set. INVALID_ARGUMENT also for a page that other hosts can reach and
  // nothing guards.
  absl::Status Validate(const SecurityOptions& security) const;
};

// Where AdminService is served, for who runs the server. Off unless somebody says where. TLS and
// tokens are those of GrpcServerOptions.
struct AdminOptions {
  std::string listen = "off";  // host:port, unix:PATH, or "off"

  bool enabled() const { return listen != "off"; }
  absl::Status Validate() const;
};

// Whether rows of sessions are written to disk. What people asked and what the target made of it
// can be told from them, so nothing is recorded unless somebody says where.
struct RecordOptions {
  std::string folder;                      // empty: nothing is recorded
  int64_t limit_bytes = int64_t{1} << 30;  // of all files together; >= 1 MiB
  int32_t sessions = 16;                   // 1..10000

  bool enabled() const { return !folder.empty(); }
  absl::Status Validate() const;
};

struct ProcessOptions {
  absl::Duration drain_timeout = absl::Seconds(30);  // > 0; from the stop signal to the hard stop
  std::string log_level = "info";                    // debug, info, warn, error, off
  std::string log_format = "text";                   // text, json
  std::string port_file;  // where the bound addresses are written; empty: nowhere

  absl::Status Validate() const;
};

struct Options {
  DrafterOptions drafter;
  std::vector<DrafterOptions> more_drafters;  // of --drafters
  ComputeOptions compute;
  EngineOptions engine;
  ClientLimitOptions clients;
  KvOptions kv;
  GrpcServerOptions grpc;
  SharedMemoryOptions shared_memory;
  MetricsOptions metrics;
  AdminOptions admin;
  GuardMode wiring_guard = GuardMode::kAlert;
  RecordOptions record;
  RequestLogOptions request_log;
  ProcessOptions process;
  // Every one of the above in force, by the flag's name with underscores, in the order of --help.
  std::vector<Setting> settings;

  absl::Status Validate() const;

  // That of --drafter, if it is given, and those of --drafters.
  std::vector<DrafterOptions> AllDrafters() const;

  // Lowers engine.max_rows_per_call to the rows of `row_width` elements that one message holds, and
  // says so in `settings`: a client that keeps to GetServerInfo's limits never meets the other one.
  void LimitRowsToMessage(int64_t row_width);

 private:
  // Whether somebody asked for `flag`, its name with underscores.
  bool IsGiven(const char* flag) const;
  absl::Status CheckDrafters() const;
  absl::Status CheckSink() const;
  absl::Status CheckRecord() const;
  absl::Status CheckSecurity() const;
  absl::Status CheckRequestLog() const;
  absl::Status CheckSharedMemory() const;
};

}  // namespace aerie
