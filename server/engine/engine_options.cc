#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "server/engine/draft_call.h"

namespace aerie {
namespace {

constexpr int32_t kMostK = 128;

absl::Status CheckRange(const char* flag, int32_t value, int32_t most) {
  if (value >= 1 && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " is ", value, "; expected ",
                   most == INT32_MAX ? absl::StrCat("1 or more") : absl::StrCat("1..", most),
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
  if (!(session_lease > absl::ZeroDuration())) {
    return absl::InvalidArgumentError(
        absl::StrCat("--session-lease is ", absl::FormatDuration(session_lease),
                     "; expected more than 0s; leave it out for the default"));
  }
  return absl::OkStatus();
}

}  // namespace aerie
