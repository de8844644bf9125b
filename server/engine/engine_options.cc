#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "server/engine/draft_call.h"

namespace aerie {
namespace {

constexpr int32_t kMostK = 128;
constexpr int32_t kMostWeight = 1000;

absl::Status CheckRange(const char* flag, int32_t value, int32_t most) {
  if (value >= 1 && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " is ", value, "; expected ",
                   most == INT32_MAX ? absl::StrCat("1 or more") : absl::StrCat("1..", most),
                   "; leave it out for the default"));
}

absl::Status CheckFromZero(const char* flag, int32_t value, const char* zero) {
  if (value >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(flag, " is ", value,
                                                 "; expected 0 or more, 0 meaning ", zero,
                                                 "; leave it out for the default"));
}

}  // namespace

absl::Status EngineOptions::Validate() const {
  AERIE_RETURN_IF_ERROR(CheckRange("--max-k", max_k, kMostK));
  AERIE_RETURN_IF_ERROR(CheckRange("--max-rows-per-call", max_rows_per_call, INT32_MAX));
  AERIE_RETURN_IF_ERROR(CheckRange("--max-sessions", max_sessions, INT32_MAX));
  AERIE_RETURN_IF_ERROR(CheckRange("--max-queued", max_queued, INT32_MAX));
  AERIE_RETURN_IF_ERROR(CheckRange("--max-context", max_context, INT32_MAX));
  AERIE_RETURN_IF_ERROR(CheckRange("--max-rows-per-pass", max_rows_per_pass, INT32_MAX));
  AERIE_RETURN_IF_ERROR(CheckRange("--max-sessions-per-pass", max_sessions_per_pass, INT32_MAX));
  AERIE_RETURN_IF_ERROR(
      CheckFromZero("--max-sessions-per-client", max_sessions_per_client, "no limit"));
  AERIE_RETURN_IF_ERROR(
      CheckFromZero("--max-queued-per-client", max_queued_per_client, "no limit"));
  AERIE_RETURN_IF_ERROR(CheckFromZero("--draft-window", draft_window, "no window"));
  AERIE_RETURN_IF_ERROR(CheckFromZero("--draft-sink", draft_sink, "no sink"));
  for (const auto& [client, weight] : client_weights) {
    if (weight >= 1 && weight <= kMostWeight) continue;
    return absl::InvalidArgumentError(absl::StrCat("--client-weight gives \"", client, "\" ",
                                                   weight, "; expected 1..", kMostWeight,
                                                   "; leave the client out for a weight of 1"));
  }
  AERIE_RETURN_IF_ERROR(ValidateTargetQuotas(target_quotas));
  if (!(session_lease > absl::ZeroDuration())) {
    return absl::InvalidArgumentError(
        absl::StrCat("--session-lease is ", absl::FormatDuration(session_lease),
                     "; expected more than 0s; leave it out for the default"));
  }
  return absl::OkStatus();
}

}  // namespace aerie
