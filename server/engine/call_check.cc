#include "server/engine/call_check.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "common/dtype.h"
#include "common/error_detail.h"
#include "common/status_macros.h"

namespace aerie {
namespace {

// Short enough that a worker gets its next round drafted, long enough for several passes.
constexpr absl::Duration kQueueRetry = absl::Milliseconds(100);
// Sessions end by their sequences ending, which takes seconds.
constexpr absl::Duration kSessionRetry = absl::Seconds(1);

absl::Status Invalid(const char* reason, std::string message) {
  return WithReason(absl::InvalidArgumentError(std::move(message)), reason);
}

absl::Status ResourceExhausted(const char* reason, absl::Duration retry_after,
                               std::string message) {
  ErrorDetail detail;
  detail.reason = reason;
  detail.retry_after = retry_after;
  return WithDetail(absl::ResourceExhaustedError(std::move(message)), detail);
}

absl::Status CheckRows(const DraftCall& call, const Session& session,
                       const EngineOptions& options) {
  const auto tokens = static_cast<int64_t>(call.tokens.size());
  if (call.rows.rows() != tokens) {
    return Invalid(
        kReasonByteCount,
        absl::StrCat("the call brings ", call.rows.rows(), " rows of hidden states and ", tokens,
                     " token ids; expected one row for each id; send the row "
                     "before each token together with that token"));
  }
  if (tokens == 0) return absl::OkStatus();
  if (tokens > options.max_rows_per_call) {
    return Invalid(kReasonTooManyRows,
                   absl::StrCat("the call brings ", tokens, " rows; expected at most ",
                                options.max_rows_per_call,
                                "; send the prompt in several calls, all but "
                                "the last with k = 0"));
  }
  if (call.rows.dtype() != session.dtype()) {
    return Invalid(
        kReasonDType,
        absl::StrCat("hidden states came as ", DTypeName(call.rows.dtype()), "; expected ",
                     DTypeName(session.dtype()),
                     ", which the manifest declared; convert them, or open a session with "
                     "that dtype"));
  }
  if (call.rows.width() != session.row_width()) {
    return Invalid(kReasonByteCount,
                   absl::StrCat("rows are ", call.rows.width(), " elements wide; expected ",
                                session.row_width(),
                                ", the manifest's captures x hidden_size; send all "
                                "captures of each token"));
  }
  return absl::OkStatus();
}

absl::Status CheckK(const DraftCall& call, const Session& session) {
  if (call.k < 0 || call.k > session.max_k()) {
    return Invalid(kReasonKOutOfRange,
                   absl::StrCat("k is ", call.k, "; expected 0..", session.max_k(),
                                ", the session's max_k; ask "
                                "for fewer tokens"));
  }
  if (call.k > 0 && call.tokens.empty()) {
    return Invalid(kReasonKWithoutRows,
                   absl::StrCat("k is ", call.k,
                                " but the call brings no row; expected one at least, "
                                "because a draft starts from the output of the last row; send the "
                                "newest row, or k = 0"));
  }
  return absl::OkStatus();
}

absl::Status CheckBase(const DraftCall& call, const Session& session) {
  if (call.base_length < 0) {
    return Invalid(kReasonRequestInvalid,
                   absl::StrCat("base_length is ", call.base_length, "; expected 0..",
                                session.length(), "; send the row index of the first row"));
  }
  if (std::holds_alternative<Manifest>(call.sequence) && call.base_length != 0) {
    return Invalid(
        kReasonRequestInvalid,
        absl::StrCat("a call with a manifest has base_length ", call.base_length,
                     "; expected 0, because nothing is kept between such calls; send all "
                     "rows, or open a session"));
  }
  // Past the context limit the worker is ahead of us and has been told so: no gap, but the same
  // answer again.
  if (call.base_length <= session.length() || session.past_limit()) return absl::OkStatus();
  ErrorDetail detail;
  detail.reason = kReasonBaseLengthAhead;
  detail.resend_from = session.length();
  return WithDetail(
      absl::FailedPreconditionError(absl::StrCat(
          "the call starts at row ", call.base_length, "; expected at most ", session.length(),
          ", the rows that the session holds; resend from row ", session.length())),
      detail);
}

}  // namespace

absl::Status CheckCall(const DraftCall& call, const Session& session, const EngineOptions& options,
                       int32_t vocab_size, absl::Time now) {
  if (call.seq != 0 && call.seq < session.last_seq()) {
    return WithReason(
        absl::AbortedError(absl::StrCat("the call has seq ", call.seq, "; expected more than ",
                                        session.last_seq(),
                                        ", which was answered already; drop this call, "
                                        "a newer one has overtaken it")),
        kReasonSeqBehind);
  }
  AERIE_RETURN_IF_ERROR(CheckRows(call, session, options));
  AERIE_RETURN_IF_ERROR(CheckTokens("token_ids", call.tokens, vocab_size));
  AERIE_RETURN_IF_ERROR(CheckK(call, session));
  AERIE_RETURN_IF_ERROR(CheckBase(call, session));
  return CheckStillWanted(call, now);
}

bool IsRepeat(const DraftCall& call, const Session& session) {
  return call.seq != 0 && call.seq == session.last_seq();
}

bool IsPastContext(const DraftCall& call, const Session& session, const EngineOptions& options) {
  return call.base_length > session.length() ||
         call.base_length + static_cast<int64_t>(call.tokens.size()) > options.max_context;
}

absl::Status CheckStillWanted(const DraftCall& call, absl::Time now) {
  if (call.cancel != nullptr && call.cancel->IsSet()) {
    return WithReason(absl::CancelledError("the caller gave up before the call was begun; expected "
                                           "nothing of it any more; the session is as it was"),
                      kReasonCancelled);
  }
  if (call.deadline <= now) {
    return WithReason(
        absl::DeadlineExceededError(absl::StrCat(
            "the deadline passed ", absl::FormatDuration(now - call.deadline),
            " before the call could begin; expected it to be ahead; decode this round without a "
            "draft and send its rows with the next call")),
        kReasonDeadline);
  }
  return absl::OkStatus();
}

absl::Status CheckTokens(const char* field, absl::Span<const int32_t> tokens, int32_t vocab_size) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= 0 && tokens[i] < vocab_size) continue;
    return Invalid(kReasonTokenOutOfRange,
                   absl::StrCat(field, "[", i, "] is ", tokens[i], "; expected 0..", vocab_size - 1,
                                ", the target's vocabulary; send no padding or placeholder ids"));
  }
  return absl::OkStatus();
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

absl::Status SessionLimitError(int32_t max_sessions) {
  return ResourceExhausted(
      kReasonSessionLimit, kSessionRetry,
      absl::StrCat("the server holds its maximum of ", max_sessions,
                   " sessions; expected fewer; decode without drafts and try again in ",
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
