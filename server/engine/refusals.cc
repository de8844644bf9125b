#include "server/engine/refusals.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error_detail.h"

namespace aerie {
namespace {

// Short enough that a worker gets its next round drafted, long enough for several passes.
constexpr absl::Duration kQueueRetry = absl::Milliseconds(100);
// Sessions end by their sequences ending, which takes seconds.
constexpr absl::Duration kSessionRetry = absl::Seconds(1);

// Whole milliseconds, upwards: whoever waits so long does not come too early.
absl::Duration Readable(absl::Duration wait) { return absl::Ceil(wait, absl::Milliseconds(1)); }

absl::Status ResourceExhausted(const char* reason, absl::Duration retry_after,
                               std::string message) {
  ErrorDetail detail;
  detail.reason = reason;
  detail.retry_after = retry_after;
  return WithDetail(absl::ResourceExhaustedError(std::move(message)), detail);
}

}  // namespace

absl::Status InvalidError(const char* reason, std::string message) {
  return WithReason(absl::InvalidArgumentError(std::move(message)), reason);
}

absl::Status ResendError(const char* reason, int64_t row, std::string seen_and_expected) {
  ErrorDetail detail;
  detail.reason = reason;
  detail.resend_from = row;
  return WithDetail(
      absl::FailedPreconditionError(absl::StrCat(seen_and_expected, "; resend from row ", row)),
      detail);
}

absl::Status SessionUnknownError(const std::string& id, bool expired, absl::Duration lease) {
  std::string why =
      expired ? absl::StrCat("was closed after ", absl::FormatDuration(lease), " without a call")
              : std::string("is not known here");
  return WithReason(
      absl::NotFoundError(absl::StrCat("session \"", id, "\" ", why,
                                       "; expected one that OpenSession of this server "
                                       "gave; open a new session and resend from row 0")),
      kReasonSessionUnknown);
}

absl::Status EvictedError(const std::string& id, int64_t start) {
  return ResendError(
      kReasonEvicted, start,
      absl::StrCat("the rows of session \"", id,
                   "\" were evicted to make room for busier ones; expected them again"));
}

absl::Status SessionLimitError(int32_t max_sessions) {
  return ResourceExhausted(
      kReasonSessionLimit, kSessionRetry,
      absl::StrCat("the server holds its maximum of ", max_sessions,
                   " sessions; expected fewer; decode without drafts and try again in ",
                   absl::FormatDuration(kSessionRetry)));
}

absl::Status ClientSessionsError(const std::string& client, int32_t max_sessions) {
  return ResourceExhausted(
      kReasonClientLimit, kSessionRetry,
      absl::StrCat(
          "client \"", client, "\" holds its maximum of ", max_sessions,
          " sessions; expected fewer; close one, or decode without drafts and try again in ",
          absl::FormatDuration(kSessionRetry)));
}

absl::Status QueueFullError(int32_t max_queued) {
  return ResourceExhausted(
      kReasonQueueFull, kQueueRetry,
      absl::StrCat(max_queued,
                   " calls wait already; expected fewer; decode this round without a "
                   "draft and try again in ",
                   absl::FormatDuration(kQueueRetry)));
}

absl::Status ClientQueueError(const std::string& client, int32_t max_queued) {
  return ResourceExhausted(
      kReasonClientLimit, kQueueRetry,
      absl::StrCat(max_queued, " calls of client \"", client,
                   "\" wait already; expected fewer; decode this round without a draft and try "
                   "again in ",
                   absl::FormatDuration(kQueueRetry)));
}

absl::Status ClientRowsError(const std::string& client, int32_t rows_per_second, int32_t burst,
                             absl::Duration wait) {
  const absl::Duration retry = Readable(wait);
  return ResourceExhausted(
      kReasonClientLimit, retry,
      absl::StrCat("client \"", client, "\" has brought more rows than it may by now; expected ",
                   rows_per_second, " a second, and ", burst,
                   " at once after a pause; decode this round without a draft and try again in ",
                   absl::FormatDuration(retry)));
}

absl::Status ClientBytesError(const std::string& client, int64_t bytes, int64_t held,
                              int64_t max_bytes) {
  return ResourceExhausted(
      kReasonClientLimit, kQueueRetry,
      absl::StrCat("client \"", client, "\" sends ", bytes, " bytes while ", held,
                   " of its are not answered yet; expected at most ", max_bytes,
                   " together; wait for answers, or decode this round without a draft and try "
                   "again in ",
                   absl::FormatDuration(kQueueRetry)));
}

absl::Status TargetSessionsError(const std::string& target, int32_t max_sessions) {
  return ResourceExhausted(
      kReasonTargetLimit, kSessionRetry,
      absl::StrCat("the quota of target \"", target, "\" is used up by ", max_sessions,
                   " sessions; expected fewer; close one, or decode without drafts and try again "
                   "in ",
                   absl::FormatDuration(kSessionRetry)));
}

absl::Status TargetRowsError(const std::string& target, int32_t rows_per_second,
                             absl::Duration wait) {
  const absl::Duration retry = Readable(wait);
  return ResourceExhausted(
      kReasonTargetLimit, retry,
      absl::StrCat("sessions of target \"", target,
                   "\" have brought more rows than its quota has by now; expected ",
                   rows_per_second,
                   " a second; decode this round without a draft and try again in ",
                   absl::FormatDuration(retry)));
}

absl::Status KvMemoryError(int64_t pages, int64_t pages_total) {
  return ResourceExhausted(
      kReasonKvMemory, kQueueRetry,
      absl::StrCat("the call needs ", pages,
                   " more pages of draft KV, and sessions with calls under "
                   "way hold the others of ",
                   pages_total,
                   "; expected room for its rows; decode this round without a draft and send its "
                   "rows again in ",
                   absl::FormatDuration(kQueueRetry)));
}

absl::Status DrainingError() {
  return WithReason(
      absl::UnavailableError("the server is shutting down; expected a serving one; decode "
                             "without drafts, or ask another server"),
      kReasonDraining);
}

absl::Status CancelledByStreamError() {
  return WithReason(
      absl::CancelledError("the stream of this session ended before the call was answered; "
                           "expected it to stay open; open a new session"),
      kReasonCancelled);
}

}  // namespace aerie
