#include "server/engine/call_check.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "common/dtype.h"
#include "common/error_detail.h"
#include "common/status_macros.h"
#include "server/engine/refusals.h"

namespace aerie {
namespace {

absl::Status CheckRows(const DraftCall& call, const Session& session,
                       const EngineOptions& options) {
  const auto tokens = static_cast<int64_t>(call.tokens.size());
  if (call.rows.rows() != tokens) {
    return InvalidError(
        kReasonByteCount,
        absl::StrCat("the call brings ", call.rows.rows(), " rows of hidden states and ", tokens,
                     " token ids; expected one row for each id; send the row "
                     "before each token together with that token"));
  }
  if (tokens == 0) return absl::OkStatus();
  if (tokens > options.max_rows_per_call) {
    return InvalidError(kReasonTooManyRows,
                        absl::StrCat("the call brings ", tokens, " rows; expected at most ",
                                     options.max_rows_per_call,
                                     "; send the prompt in several calls, all but "
                                     "the last with k = 0"));
  }
  if (call.fp8 != session.fp8()) {
    return InvalidError(
        kReasonDType,
        absl::StrCat("hidden states came ", call.fp8 ? "as" : "not as",
                     " float8_e4m3fn; expected the dtype that the manifest declared; convert them, "
                     "or open a session with that dtype"));
  }
  if (call.fused != session.fused()) {
    return InvalidError(
        kReasonRequestInvalid,
        absl::StrCat("hidden_states.fused is ", call.fused ? "true" : "false", "; expected ",
                     session.fused() ? "true" : "false",
                     ", as the manifest declared; send such rows, or open another session"));
  }
  if (call.rows.dtype() != session.dtype()) {
    return InvalidError(
        kReasonDType,
        absl::StrCat("hidden states came as ", DTypeName(call.rows.dtype()), "; expected ",
                     DTypeName(session.dtype()),
                     ", which the manifest declared; convert them, or open a session with "
                     "that dtype"));
  }
  if (call.rows.width() != session.row_width()) {
    return InvalidError(kReasonByteCount,
                        absl::StrCat("rows are ", call.rows.width(), " elements wide; expected ",
                                     session.row_width(),
                                     ", the manifest's captures x hidden_size; send all "
                                     "captures of each token"));
  }
  return absl::OkStatus();
}

absl::Status CheckK(const DraftCall& call, const Session& session) {
  if (call.k < 0 || call.k > session.max_k()) {
    return InvalidError(kReasonKOutOfRange,
                        absl::StrCat("k is ", call.k, "; expected 0..", session.max_k(),
                                     ", the session's max_k; ask "
                                     "for fewer tokens"));
  }
  if (call.k > 0 && call.tokens.empty()) {
    return InvalidError(
        kReasonKWithoutRows,
        absl::StrCat("k is ", call.k,
                     " but the call brings no row; expected one at least, "
                     "because a draft starts from the output of the last row; send the "
                     "newest row, or k = 0"));
  }
  return absl::OkStatus();
}

absl::Status CheckBase(const DraftCall& call, const Session& session, const KvPages& pages,
                       int64_t max_context) {
  if (call.base_length < session.start()) {
    return InvalidError(
        kReasonRequestInvalid,
        absl::StrCat(
            "base_length is ", call.base_length, "; expected ", session.start(), "..",
            session.length(),
            ", the rows from the session's first one on; send the row index of the first row"));
  }
  if (std::holds_alternative<Manifest>(call.sequence) && call.base_length != 0) {
    return InvalidError(
        kReasonRequestInvalid,
        absl::StrCat("a call with a manifest has base_length ", call.base_length,
                     "; expected 0, because nothing is kept between such calls; send all "
                     "rows, or open a session"));
  }
  const int64_t base = call.base_length;
  if (base > session.length()) {
    // Past the context limit the worker is ahead of us and has been told so: no gap, but the same
    // answer again. It came back when its rows would fit.
    const bool fits = base + static_cast<int64_t>(call.tokens.size()) <= max_context;
    if (session.past_limit() && !(session.evicted() && fits)) return absl::OkStatus();
    if (session.evicted()) return EvictedError(session.id(), session.start());
    return ResendError(kReasonBaseLengthAhead, session.length(),
                       absl::StrCat("the call starts at row ", base, "; expected at most ",
                                    session.length(), ", the rows that the session holds"));
  }
  const int64_t resume = pages.ResumeFrom(session.pages(), session.visible(), base);
  if (resume == base) return absl::OkStatus();
  return ResendError(
      kReasonEvicted, resume,
      absl::StrCat("the call goes back from row ", session.length(), " to row ", base,
                   ", which looks back on rows that have left the draft window; "
                   "expected these rows again, or a new session that starts later"));
}

absl::Status CheckVerifyCost(const DraftCall& call, const Session& session) {
  const bool told = call.verify_time.has_value();
  const bool fine = told ? absl::ZeroDuration() <= *call.verify_time &&
                               *call.verify_time < absl::InfiniteDuration() &&
                               0 <= call.verify_tokens && call.verify_tokens <= session.max_k()
                         : call.verify_tokens == 0;
  if (fine) return absl::OkStatus();
  return InvalidError(
      kReasonRequestInvalid,
      absl::StrCat("verify_cost tells of ",
                   told ? absl::FormatDuration(*call.verify_time) : std::string("no time"), " for ",
                   call.verify_tokens, " draft tokens; expected a time of 0s or more and 0..",
                   session.max_k(),
                   ", the session's max_k, tokens; send what the last verification took, or leave "
                   "it out"));
}

}  // namespace

absl::Status CheckCall(const DraftCall& call, const Session& session, const KvPages& pages,
                       const EngineOptions& options, int32_t vocab_size, absl::Time now) {
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
  AERIE_RETURN_IF_ERROR(CheckVerifyCost(call, session));
  AERIE_RETURN_IF_ERROR(CheckBase(call, session, pages, options.max_context));
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
    return InvalidError(
        kReasonTokenOutOfRange,
        absl::StrCat(field, "[", i, "] is ", tokens[i], "; expected 0..", vocab_size - 1,
                     ", the target's vocabulary; send no padding or placeholder ids"));
  }
  return absl::OkStatus();
}

}  // namespace aerie
