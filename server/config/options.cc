#include "server/config/options.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/status_macros.h"
#include "server/transport/server_info.h"

namespace aerie {
namespace {

constexpr int32_t kMostThreads = 1024;
constexpr int64_t kLeastKvBytes = int64_t{1} << 20;
constexpr int32_t kMostPageRows = 1024;
constexpr int64_t kLeastRecordBytes = int64_t{1} << 20;
constexpr int32_t kMostRecordedSessions = 10'000;

absl::Status Missing(const char* flag, const char* what) {
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " is missing; expected ", what, "; give ", flag, " DIR (see --help)"));
}

// A part of something cannot be more than the whole; 0: not limited.
absl::Status CheckPart(const char* part_flag, int32_t part, const char* whole_flag, int32_t whole) {
  if (part <= whole) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(part_flag, " is ", part, " but ", whole_flag, " is ", whole,
                   "; expected no more for one client than for all; lower the one or raise the "
                   "other"));
}

}  // namespace

absl::Status DrafterOptions::Validate() const {
  if (drafter.empty()) {
    return Missing("--drafter", "the folder of an EAGLE-3 checkpoint with config.json");
  }
  if (target.empty()) {
    return Missing("--target", "the folder of the model that verifies, with config.json");
  }
  if (rope_theta.has_value() && !(*rope_theta > 1.0 && std::isfinite(*rope_theta))) {
    return absl::InvalidArgumentError(
        absl::StrCat("--rope-theta is ", *rope_theta,
                     "; expected a finite base above 1; leave it out for the checkpoint's own"));
  }
  return absl::OkStatus();
}

absl::Status ComputeOptions::Validate() const {
  const bool numbered = device.size() > 5 && device.compare(0, 5, "cuda:") == 0 &&
                        device.find_first_not_of("0123456789", 5) == std::string::npos;
  if (device != "cpu" && device != "cuda" && !numbered) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--device is \"", device,
        "\"; expected cpu, cuda or cuda:N; name one of these, N being a number of nvidia-smi"));
  }
  const bool fp8 = dtype == "fp8";
  if (dtype != "auto" && dtype != "float32" && dtype != "bfloat16" && dtype != "int8" && !fp8) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--dtype is \"", dtype,
        "\"; expected auto, float32, bfloat16, int8 or fp8; leave it out to let the CPU's "
        "features decide"));
  }
  if (fp8 && device == "cpu") {
    return absl::InvalidArgumentError(
        "--dtype is \"fp8\" but --device is \"cpu\", which has no products of fp8; expected auto, "
        "float32, bfloat16 or int8 for it; give one of these, or --device cuda:N");
  }
  if (threads < 0 || threads > kMostThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("--threads is ", threads, "; expected 0..", kMostThreads,
                     "; give 0 for what affinity and CPU quota allow"));
  }
  return absl::OkStatus();
}

absl::Status KvOptions::Validate() const {
  if (memory_bytes < kLeastKvBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("--kv-memory is ", memory_bytes, "; expected ", kLeastKvBytes,
                     " bytes or more; give the memory that the draft KV of all sessions may take"));
  }
  if (page_rows < 1 || page_rows > kMostPageRows) {
    return absl::InvalidArgumentError(absl::StrCat("--kv-page-rows is ", page_rows,
                                                   "; expected 1..", kMostPageRows,
                                                   "; leave it out for the default"));
  }
  return absl::OkStatus();
}

absl::Status AdminOptions::Validate() const {
  const size_t colon = listen.rfind(':');
  if (!enabled() || (colon != std::string::npos && colon + 1 < listen.size())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--admin-listen is \"", listen,
                   "\"; expected host:port, unix:PATH or off; give an address such as "
                   "127.0.0.1:50052 or unix:/run/aerie-admin.sock"));
}

absl::Status RecordOptions::Validate() const {
  if (limit_bytes < kLeastRecordBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--record-limit is ", limit_bytes, "; expected ", kLeastRecordBytes,
        " bytes or more; give the disk space that the recording may take, such as 1GiB"));
  }
  if (sessions < 1 || sessions > kMostRecordedSessions) {
    return absl::InvalidArgumentError(absl::StrCat("--record-sessions is ", sessions,
                                                   "; expected 1..", kMostRecordedSessions,
                                                   "; leave it out for the default"));
  }
  return absl::OkStatus();
}

absl::Status ProcessOptions::Validate() const {
  if (drain_timeout > absl::ZeroDuration() && drain_timeout < absl::InfiniteDuration()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--drain-timeout is ", absl::FormatDuration(drain_timeout),
                   "; expected a time above 0s; give one that is shorter than the patience of who "
                   "stops the server"));
}

absl::Status Options::Validate() const {
  AERIE_RETURN_IF_ERROR(CheckDrafters());
  AERIE_RETURN_IF_ERROR(compute.Validate());
  AERIE_RETURN_IF_ERROR(engine.Validate());
  AERIE_RETURN_IF_ERROR(CheckPart("--max-sessions-per-client", engine.max_sessions_per_client,
                                  "--max-sessions", engine.max_sessions));
  AERIE_RETURN_IF_ERROR(CheckPart("--max-queued-per-client", engine.max_queued_per_client,
                                  "--max-queued", engine.max_queued));
  AERIE_RETURN_IF_ERROR(CheckSink());
  AERIE_RETURN_IF_ERROR(kv.Validate());
  AERIE_RETURN_IF_ERROR(grpc.Validate());
  AERIE_RETURN_IF_ERROR(clients.Validate(grpc.max_message_bytes));
  AERIE_RETURN_IF_ERROR(metrics.Validate(grpc.security));
  AERIE_RETURN_IF_ERROR(admin.Validate());
  AERIE_RETURN_IF_ERROR(CheckSecurity());
  AERIE_RETURN_IF_ERROR(CheckSharedMemory());
  AERIE_RETURN_IF_ERROR(CheckRecord());
  AERIE_RETURN_IF_ERROR(request_log.Validate());
  AERIE_RETURN_IF_ERROR(CheckRequestLog());
  return process.Validate();
}

bool Options::IsGiven(const char* flag) const {
  for (const Setting& setting : settings) {
    if (setting.name == flag) return setting.source != "default";
  }
  return false;
}

std::vector<DrafterOptions> Options::AllDrafters() const {
  std::vector<DrafterOptions> all;
  if (!drafter.drafter.empty()) all.push_back(drafter);
  all.insert(all.end(), more_drafters.begin(), more_drafters.end());
  return all;
}

absl::Status Options::CheckDrafters() const {
  if (!drafter.drafter.empty() || more_drafters.empty()) return drafter.Validate();
  for (const char* flag :
       {"target", "name", "layer_id_convention", "embedding_key", "norm_before_residual",
        "norm_output", "rope_theta", "ignore_config_key"}) {
    if (!IsGiven(flag)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--", absl::StrReplaceAll(flag, {{"_", "-"}}),
        " is given but --drafter is not; expected it beside the drafter that it is about; write it "
        "into the file of --drafters, or give --drafter"));
  }
  return absl::OkStatus();
}

absl::Status Options::CheckSink() const {
  // The default sink is no contradiction; one that somebody asked for is.
  if (engine.draft_window != 0 || !IsGiven("draft_sink")) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--draft-sink is ", engine.draft_sink,
                   " but --draft-window is 0; expected a window beside which the first rows stay "
                   "visible; give --draft-window, or leave --draft-sink out"));
}

absl::Status Options::CheckSecurity() const {
  if (grpc.reflection && grpc.security.tokens() && IsGiven("reflection")) {
    return absl::InvalidArgumentError(
        "--reflection is on but --token-file is given; expected one of them, since reflection asks "
        "nobody for a token; leave --reflection out, it is off beside tokens");
  }
  if (!admin.enabled()) return absl::OkStatus();
  return CheckExposure(grpc.security, "--admin-listen", {admin.listen});
}

absl::Status Options::CheckRecord() const {
  if (record.enabled()) return record.Validate();
  for (const auto& [name, flag] : {std::pair{"record_limit", "--record-limit"},
                                   std::pair{"record_sessions", "--record-sessions"}}) {
    if (!IsGiven(name)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(flag,
                     " is given but --record is not; expected a folder to record into; give "
                     "--record DIR, or leave ",
                     flag, " out"));
  }
  return absl::OkStatus();
}

absl::Status Options::CheckRequestLog() const {
  if (!request_log.path.empty()) return absl::OkStatus();
  for (const Setting& setting : settings) {
    if (setting.source == "default") continue;
    if (setting.name != "request_log_size" && setting.name != "request_log_files") continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--", absl::StrReplaceAll(setting.name, {{"_", "-"}}), " is ", setting.value,
        " but there is no --request-log; expected the file that it is about; give --request-log "
        "FILE, or leave it out"));
  }
  return absl::OkStatus();
}

void Options::LimitRowsToMessage(int64_t row_width) {
  const int32_t rows = RowsThatFit(grpc.max_message_bytes, row_width);
  if (engine.max_rows_per_call <= rows) return;
  for (Setting& setting : settings) {
    if (setting.name != "max_rows_per_call") continue;
    setting.value = absl::StrCat(rows);
    setting.source =
        absl::StrCat("max_message_bytes ", grpc.max_message_bytes, " over rows of ", row_width * 4,
                     " bytes (float32); ", engine.max_rows_per_call, " by ", setting.source);
  }
  engine.max_rows_per_call = rows;
}

}  // namespace aerie
