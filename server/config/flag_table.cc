#include "server/config/flag_table.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status_macros.h"
#include "server/config/drafters_file.h"
#include "server/config/flag_readers.h"
#include "server/config/flag_table_builder.h"

namespace aerie {
namespace {

void AddDrafterFlags(TableBuilder& table) {
  table.Group("Drafter");
  table.Text("drafter", "DIR",
             "Folder of the EAGLE-3 checkpoint: config.json, model.safetensors. Required.",
             [](Options& o) -> std::string& { return o.drafter.drafter; });
  table.Text(
      "target", "DIR",
      "Folder of the target: config.json, and the embedding if the drafter has none. Required.",
      [](Options& o) -> std::string& { return o.drafter.target; });
  table.Text("name", "NAME", "What the drafter is called; empty: the name of its folder.",
             [](Options& o) -> std::string& { return o.drafter.name; });
  table.Add("layer-id-convention", "CONVENTION",
            "input-of-layer or output-of-layer: how layer ids in the checkpoint are meant; needed "
            "only where they "
            "can be read both ways.",
            "", ReadConvention,
            [](Options& o) -> std::optional<LayerIdConvention>& { return o.drafter.layer_ids; });
  table.Text("embedding-key", "NAME",
             "The target's tensor that is its token embedding; empty: found by its suffix.",
             [](Options& o) -> std::string& { return o.drafter.embedding_key; });
  table.Add("norm-before-residual", "on|off",
            "Whether the residual is the normed hidden state; beats the checkpoint.", "",
            ReadSwitch,
            [](Options& o) -> std::optional<bool>& { return o.drafter.norm_before_residual; });
  table.Add("norm-output", "on|off", "Whether the normed output is fed back; beats the checkpoint.",
            "", ReadSwitch,
            [](Options& o) -> std::optional<bool>& { return o.drafter.norm_output; });
  table.Add("rope-theta", "BASE", "Base of the rotation, above 1; beats the checkpoint.", "",
            ReadNumber, [](Options& o) -> std::optional<double>& { return o.drafter.rope_theta; });
  table.Raw({.name = "ignore-config-key",
             .group = "",
             .value = "KEY",
             .help = "A key of the checkpoint's config.json to be taken as absent, a.b for one "
                     "inside an object. Repeatable.",
             .default_text = "",
             .repeatable = true,
             .set = [](const std::vector<std::string>& texts, Options* options) {
               options->drafter.ignored_config_keys = texts;
               return absl::OkStatus();
             }});
  table.Raw({.name = "drafters",
             .group = "",
             .value = "FILE",
             .help =
                 "More drafters: a JSON list with an object for each, whose keys are the flags "
                 "of this group with underscores, each with a name. Paths that are not absolute "
                 "start at the file's folder. Beside --drafter, or in its place.",
             .default_text = "",
             .repeatable = false,
             .set = [](const std::vector<std::string>& texts, Options* options) -> absl::Status {
               AERIE_ASSIGN_OR_RETURN(options->more_drafters, ReadDraftersFile(texts.front()));
               return absl::OkStatus();
             }});
}

void AddComputeFlags(TableBuilder& table) {
  table.Group("Compute");
  table.Text(
      "device", "DEVICE",
      "cpu, or cuda:N (cuda: the first): weights, draft KV and arithmetic on that GPU; wants "
      "a build with CUDA.",
      [](Options& o) -> std::string& { return o.compute.device; });
  table.Text("dtype", "DTYPE",
             "auto, float32, bfloat16, int8 or fp8: of weights; draft KV is bfloat16 but with "
             "float32. auto: bfloat16 where the CPU is quick with it. int8 is quicker still and "
             "rounds weights, and so does fp8, on GPUs alone.",
             [](Options& o) -> std::string& { return o.compute.dtype; });
  table.Int(
      "threads",
      "Threads of one pass, 0..1024; 0: what its work is worth, at most what affinity and CPU "
      "quota allow.",
      [](Options& o) -> int32_t& { return o.compute.threads; });
}

void AddLimitFlags(TableBuilder& table) {
  table.Group("Limits");
  table.Int("max-k", "Tokens of one proposal, 1..128.",
            [](Options& o) -> int32_t& { return o.engine.max_k; });
  table.Int("max-rows-per-call", "Rows that one call may bring.",
            [](Options& o) -> int32_t& { return o.engine.max_rows_per_call; });
  table.Int("max-sessions", "Sessions held at once.",
            [](Options& o) -> int32_t& { return o.engine.max_sessions; });
  table.Int("max-queued", "Calls that wait for their first pass; more are refused.",
            [](Options& o) -> int32_t& { return o.engine.max_queued; });
  table.Int("max-context", "Rows of one session; past it calls are answered without a draft.",
            [](Options& o) -> int32_t& { return o.engine.max_context; });
  table.Int("max-rows-per-pass", "Rows of one pass, over all sessions.",
            [](Options& o) -> int32_t& { return o.engine.max_rows_per_pass; });
  table.Int("max-sessions-per-pass", "Sessions of one pass.",
            [](Options& o) -> int32_t& { return o.engine.max_sessions_per_pass; });
  table.Time("session-lease", "Idle time after which a session is closed, above 0s.",
             [](Options& o) -> absl::Duration& { return o.engine.session_lease; });
  table.Add("max-message-bytes", "BYTES", "Bytes of one request, 64KiB..1GiB.", "64MiB", ReadBytes,
            [](Options& o) -> int64_t& { return o.grpc.max_message_bytes; });
}

void AddKvFlags(TableBuilder& table) {
  table.Group("Draft KV");
  table.Add("kv-memory", "BYTES",
            "Bytes of draft KV of all sessions together; what has been idle longest makes room.",
            "1GiB", ReadBytes, [](Options& o) -> int64_t& { return o.kv.memory_bytes; });
  table.Int("kv-page-rows", "Rows of one page of it, 1..1024.",
            [](Options& o) -> int32_t& { return o.kv.page_rows; });
  table.Int("draft-window",
            "Rows that a draft looks back on, beside the first ones (--draft-sink); 0: all.",
            [](Options& o) -> int32_t& { return o.engine.draft_window; });
  table.Int("draft-sink", "Rows at a session's start that stay visible beside a --draft-window.",
            [](Options& o) -> int32_t& { return o.engine.draft_sink; });
}

void AddListenFlags(TableBuilder& table) {
  table.Group("Listeners");
  table.Raw({.name = "listen",
             .group = "",
             .value = "ADDRESS",
             .help = "Where gRPC is served: host:port (0: a free one) or unix:PATH. Repeatable; "
                     "the environment "
                     "variable takes a comma-separated list.",
             .default_text = absl::StrJoin(table.defaults().grpc.listen, ","),
             .repeatable = true,
             .set = [](const std::vector<std::string>& texts, Options* options) {
               options->grpc.listen = texts;
               return absl::OkStatus();
             }});
  table.Text("metrics-listen", "ADDRESS", "Where /metrics is served over HTTP: host:port, or off.",
             [](Options& o) -> std::string& { return o.metrics.listen; });
  table.Text("admin-listen", "ADDRESS",
             "Where AdminService is served, for who runs the server and for no one else: host:port "
             "(0: a free one), unix:PATH, or off.",
             [](Options& o) -> std::string& { return o.admin.listen; });
  table.Add("reflection", "on|off", "Whether tools may ask which services there are.", "on",
            ReadSwitch, [](Options& o) -> bool& { return o.grpc.reflection; });
}

void AddWiringFlags(TableBuilder& table) {
  table.Group("Wiring");
  table.Add("wiring-guard", "MODE",
            "off, alert or not-serving: what is done when rows are not of the captures that the "
            "drafter was measured with (wiring.json beside it). alert: metrics, log, admin report. "
            "not-serving: health too.",
            std::string(GuardModeName(table.defaults().wiring_guard)), ReadGuardMode,
            [](Options& o) -> GuardMode& { return o.wiring_guard; });
  table.Text("record", "DIR",
             "A new or empty folder to write hidden states and tokens of sessions into, for "
             "aerie-verify; only its owner can read it. Empty: nothing is recorded.",
             [](Options& o) -> std::string& { return o.record.folder; });
  table.Add("record-limit", "BYTES", "Bytes of the recording, 1MiB or more; then it stops.", "1GiB",
            ReadBytes, [](Options& o) -> int64_t& { return o.record.limit_bytes; });
  table.Int("record-sessions", "Sessions of the recording, 1..10000; then it stops.",
            [](Options& o) -> int32_t& { return o.record.sessions; });
}

void AddLogFlags(TableBuilder& table) {
  table.Group("Logs");
  table.Text("log-level", "LEVEL",
             "debug, info, warn, error or off. SIGUSR1 changes to debug and back, aerie-admin to "
             "any.",
             [](Options& o) -> std::string& { return o.process.log_level; });
  table.Text("log-format", "FORMAT", "text, or json: one object a line.",
             [](Options& o) -> std::string& { return o.process.log_format; });
  table.Text("request-log", "FILE",
             "Where a JSON line is written for each session when it ends; empty: nowhere.",
             [](Options& o) -> std::string& { return o.request_log.path; });
  table.Add("request-log-size", "BYTES", "Bytes of one file of it, 1MiB..1024GiB.", "64MiB",
            ReadBytes, [](Options& o) -> int64_t& { return o.request_log.max_bytes; });
  table.Int("request-log-files",
            "Files of it that are kept, the one that is written included, 1..1000.",
            [](Options& o) -> int32_t& { return o.request_log.max_files; });
}

void AddProcessFlags(TableBuilder& table) {
  table.Group("Process");
  table.Time("drain-timeout", "From SIGTERM to the hard stop; open rounds finish in between.",
             [](Options& o) -> absl::Duration& { return o.process.drain_timeout; });
  table.Text(
      "port-file", "FILE",
      "Written when the server is ready: {\"grpc\": [addresses], \"metrics\": address or null, "
      "\"admin\": address or null}.",
      [](Options& o) -> std::string& { return o.process.port_file; });
}

}  // namespace

std::vector<Flag> FlagTable() {
  TableBuilder table;
  AddDrafterFlags(table);
  AddComputeFlags(table);
  AddLimitFlags(table);
  AddClientFlags(table);
  AddKvFlags(table);
  AddListenFlags(table);
  AddSecurityFlags(table);
  AddSharedMemoryFlags(table);
  AddWiringFlags(table);
  AddLogFlags(table);
  AddProcessFlags(table);
  return table.Take();
}

}  // namespace aerie
