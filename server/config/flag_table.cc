#include "server/config/flag_table.h"

#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/status_macros.h"

namespace aerie {
namespace {

absl::Status Unreadable(const std::string& flag, const std::string& text, const char* expected,
                        const char* example) {
  return absl::InvalidArgumentError(absl::StrCat("--", flag, " is \"", text, "\"; expected ",
                                                 expected, "; give a value such as ", example));
}

absl::StatusOr<int32_t> ReadInt(const std::string& flag, const std::string& text) {
  int32_t value = 0;
  if (absl::SimpleAtoi(text, &value)) return value;
  return Unreadable(flag, text, "a whole number below 2147483648", "16");
}

absl::StatusOr<int64_t> ReadBytes(const std::string& flag, const std::string& text) {
  absl::string_view number = text;
  int64_t unit = 1;
  for (const auto& [suffix, bytes] : {std::pair<absl::string_view, int64_t>{"KiB", 1 << 10},
                                      {"MiB", 1 << 20},
                                      {"GiB", 1 << 30}}) {
    if (absl::ConsumeSuffix(&number, suffix)) unit = bytes;
  }
  int64_t value = 0;
  if (absl::SimpleAtoi(number, &value) && value >= 0 &&
      value <= std::numeric_limits<int64_t>::max() / unit) {
    return value * unit;
  }
  return Unreadable(flag, text, "bytes, or KiB, MiB or GiB", "64MiB");
}

absl::StatusOr<absl::Duration> ReadDuration(const std::string& flag, const std::string& text) {
  absl::Duration value;
  if (absl::ParseDuration(text, &value)) return value;
  return Unreadable(flag, text, "a time with its unit", "30s, 10m or 1h30m");
}

absl::StatusOr<bool> ReadSwitch(const std::string& flag, const std::string& text) {
  if (text == "on") return true;
  if (text == "off") return false;
  return Unreadable(flag, text, "on or off", "off");
}

absl::StatusOr<double> ReadNumber(const std::string& flag, const std::string& text) {
  double value = 0.0;
  if (absl::SimpleAtod(text, &value)) return value;
  return Unreadable(flag, text, "a number", "10000");
}

absl::StatusOr<LayerIdConvention> ReadConvention(const std::string& flag, const std::string& text) {
  if (text == "input-of-layer") return LayerIdConvention::kInputOfLayer;
  if (text == "output-of-layer") return LayerIdConvention::kOutputOfLayer;
  return Unreadable(flag, text, "input-of-layer (id i is boundary i) or output-of-layer (i + 1)",
                    "input-of-layer");
}

absl::StatusOr<std::string> ReadText(const std::string&, const std::string& text) { return text; }

// A `set` that reads one text with `read` into the field that `at` gives.
template <typename Read, typename At>
auto Into(std::string flag, Read read, At at) {
  return [flag = std::move(flag), read, at](const std::vector<std::string>& texts,
                                            Options* options) -> absl::Status {
    AERIE_ASSIGN_OR_RETURN(at(*options), read(flag, texts.front()));
    return absl::OkStatus();
  };
}

class TableBuilder {
 public:
  void Group(std::string group) { group_ = std::move(group); }

  template <typename Read, typename At>
  void Add(const char* name, const char* value, const char* help, std::string default_text,
           Read read, At at) {
    flags_.push_back(
        {name, group_, value, help, std::move(default_text), false, Into(name, read, at)});
  }

  template <typename At>
  void Int(const char* name, const char* help, At at) {
    Add(name, "N", help, absl::StrCat(at(defaults_)), ReadInt, at);
  }
  template <typename At>
  void Time(const char* name, const char* help, At at) {
    Add(name, "TIME", help, absl::FormatDuration(at(defaults_)), ReadDuration, at);
  }
  template <typename At>
  void Text(const char* name, const char* value, const char* help, At at) {
    Add(name, value, help, at(defaults_), ReadText, at);
  }
  void Raw(Flag flag) {
    flag.group = group_;
    flags_.push_back(std::move(flag));
  }

  Options& defaults() { return defaults_; }
  std::vector<Flag> Take() { return std::move(flags_); }

 private:
  Options defaults_;
  std::string group_;
  std::vector<Flag> flags_;
};

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
}

void AddComputeFlags(TableBuilder& table) {
  table.Group("Compute");
  table.Text("device", "DEVICE", "cpu.",
             [](Options& o) -> std::string& { return o.compute.device; });
  table.Text("dtype", "DTYPE",
             "auto, float32 or bfloat16: of products and draft KV. auto: bfloat16 where the CPU "
             "multiplies it.",
             [](Options& o) -> std::string& { return o.compute.dtype; });
  table.Int("threads", "Threads of one pass, 0..1024; 0: what affinity and CPU quota allow.",
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
  table.Add("reflection", "on|off", "Whether tools may ask which services there are.", "on",
            ReadSwitch, [](Options& o) -> bool& { return o.grpc.reflection; });
}

void AddProcessFlags(TableBuilder& table) {
  table.Group("Process");
  table.Time("drain-timeout", "From SIGTERM to the hard stop; open rounds finish in between.",
             [](Options& o) -> absl::Duration& { return o.process.drain_timeout; });
  table.Text("log-level", "LEVEL", "debug, info, warn, error or off.",
             [](Options& o) -> std::string& { return o.process.log_level; });
  table.Text(
      "port-file", "FILE",
      "Written when the server is ready: {\"grpc\": [addresses], \"metrics\": address or null}.",
      [](Options& o) -> std::string& { return o.process.port_file; });
}

}  // namespace

std::vector<Flag> FlagTable() {
  TableBuilder table;
  AddDrafterFlags(table);
  AddComputeFlags(table);
  AddLimitFlags(table);
  AddListenFlags(table);
  AddProcessFlags(table);
  return table.Take();
}

}  // namespace aerie
