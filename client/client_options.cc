#include "client/client_options.h"

#include "absl/strings/str_cat.h"

namespace aerie {

absl::Status ClientOptions::Validate() const {
  if (deadline <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("deadline is ", absl::FormatDuration(deadline),
                     ", but a call needs some time; give more than 0"));
  }
  if (patience < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat("patience is ", absl::FormatDuration(patience),
                                                   ", but it cannot be negative; give 0 to never "
                                                   "wait for a lost connection"));
  }
  if (max_message_bytes < (int64_t{64} << 10) || max_message_bytes > (int64_t{2047} << 20)) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_message_bytes is ", max_message_bytes,
                     ", but 65536 to 2146435072 is possible; the usual value is 67108864"));
  }
  if (keepalive < absl::Seconds(10)) {
    return absl::InvalidArgumentError(
        absl::StrCat("keepalive is ", absl::FormatDuration(keepalive),
                     ", but servers close connections that ping more often than every 10s; give "
                     "10s or more"));
  }
  if (shared_memory_bytes < (int64_t{64} << 10) || shared_memory_bytes > (int64_t{64} << 30)) {
    return absl::InvalidArgumentError(
        absl::StrCat("shared_memory_bytes is ", shared_memory_bytes,
                     ", but 65536 to 68719476736 is possible; the usual value is 33554432"));
  }
  return absl::OkStatus();
}

}  // namespace aerie
