#include "server/engine/draft_round.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "common/error_detail.h"
#include "server/engine/call_check.h"

namespace aerie {

DraftRound::DraftRound(DraftCall call, Session* session, DraftModel* model)
    : call_(std::move(call)),
      session_(session),
      model_(model),
      bytes_(static_cast<int64_t>(call_.rows.bytes().size())) {
  AERIE_CHECK(!call_.tokens.empty());
}

int64_t DraftRound::extend_rows_left() const {
  return static_cast<int64_t>(call_.tokens.size()) - extended_;
}

bool DraftRound::complete() const { return extend_rows_left() == 0 && tree_.size() == call_.k; }

bool DraftRound::ShouldStop(absl::Time now) const {
  return extend_rows_left() == 0 && !aerie::CheckStillWanted(call_, now).ok();
}

absl::Status DraftRound::CheckStillWanted(absl::Time now) const {
  AERIE_CHECK(!begun_);
  return aerie::CheckStillWanted(call_, now);
}

StepSequence DraftRound::NextPart(int64_t extend_rows, absl::Time now) {
  AERIE_CHECK(!complete());
  if (!begun_) {
    begun_ = true;
    timing_.queue = now - call_.arrival;
    if (call_.base_length < session_->length()) {
      model_->Truncate(session_->slot(), call_.base_length);
    }
  }
  part_rows_ = extend_rows;
  StepSequence part;
  part.slot = session_->slot();
  if (extend_rows > 0) {
    AERIE_CHECK(extend_rows <= extend_rows_left());
    part.position = call_.base_length + extended_;
    part.tokens = absl::MakeConstSpan(call_.tokens)
                      .subspan(static_cast<size_t>(extended_), static_cast<size_t>(extend_rows));
    part.aux = call_.rows.Slice(extended_, extend_rows);
    part.wants_output = extend_rows == extend_rows_left() && call_.k > 0;
  } else {
    AERIE_CHECK(extend_rows_left() == 0 && !tree_.empty());
    // The newest draft token, at the place that it would have if it is kept.
    part.position = end() + tree_.size() - 1;
    part.tokens = absl::MakeConstSpan(tree_.tokens).last(1);
    part.wants_output = true;
  }
  return part;
}

absl::Status DraftRound::TakeOutput(const StepOutput& output, absl::Duration pass_time) {
  const bool was_draft = part_rows_ == 0;
  (was_draft ? timing_.step : timing_.extend) += pass_time;
  if (!was_draft) {
    extended_ += part_rows_;
    if (extend_rows_left() > 0) return absl::OkStatus();
    call_.rows = HiddenRows();
    call_.rows_owner.reset();
    if (call_.k == 0) return absl::OkStatus();
  }
  if (!output.finite) {
    return WithReason(
        absl::InvalidArgumentError(absl::StrCat(
            "the drafter's scores behind row ", end() - 1 + tree_.size(),
            " are NaN or infinite; expected hidden states that it can compute with; check where "
            "they are captured, and open a new session if earlier rows were too large as well")),
        kReasonNonFinite);
  }
  AERIE_CHECK(!output.top.empty()) << "the drafter gave no output for a row that wanted it";
  const ScoredToken& best = output.top.front();
  // An id that came out of NaN or infinite logits is noise, and may lie anywhere.
  const int32_t vocab_size = model_->spec().vocab_size;
  if (best.token < 0 || best.token >= vocab_size || !std::isfinite(best.log_prob)) {
    return absl::InternalError(
        absl::StrCat("its output was token ", best.token, " with log-probability ", best.log_prob,
                     ", expected 0..", vocab_size - 1, " with a finite one"));
  }
  tree_.AppendToChain(best.token, best.log_prob);
  return absl::OkStatus();
}

DraftResult DraftRound::Finish(absl::Time now, RoundRecord* record) {
  AERIE_CHECK(begun_ && extend_rows_left() == 0);
  if (tree_.size() > 1) model_->Truncate(session_->slot(), end());
  Settlement settlement = session_->Commit(call_.base_length, call_.tokens, call_.accepted, now);
  if (!tree_.empty()) {
    const auto lost = session_->Propose(tree_);
    if (lost.has_value()) settlement.unreported = lost;
  }
  timing_.total = now - call_.arrival;

  DraftResult result;
  result.seq = call_.seq;
  result.length = session_->length();
  if (call_.k == 0) {
    result.no_draft_reason = NoDraftReason::kNotAsked;
    record->skipped = SkipReason::kNotAsked;
  } else if (tree_.size() < call_.k) {
    result.no_draft_reason = NoDraftReason::kDeadline;
    record->skipped = SkipReason::kDeadline;
  }
  if (settlement.judgement.has_value()) result.accepted = settlement.judgement->accepted;
  result.timing = timing_;

  record->queue_wait = timing_.queue;
  record->extend_time = timing_.extend;
  record->step_time = timing_.step;
  record->total = timing_.total;
  record->rows = static_cast<int64_t>(call_.tokens.size());
  record->bytes = bytes_;
  record->proposed = tree_.size();
  record->committed_tokens = settlement.committed_tokens;
  record->judgement = settlement.judgement;
  record->unreported = settlement.unreported;
  result.tree = std::move(tree_);
  return result;
}

absl::Status DraftRound::Fail(const absl::Status& cause, absl::Time now, RoundRecord* record) {
  *record = RecordWithoutPass(cause.code(), call_.arrival, now);
  if (!begun_) return cause;
  record->queue_wait = timing_.queue;
  record->extend_time = timing_.extend;
  record->step_time = timing_.step;
  model_->Truncate(session_->slot(), call_.base_length);
  session_->RollBackTo(call_.base_length);
  ErrorDetail detail = DetailOf(cause);
  if (detail.reason.empty()) detail.reason = kReasonPassFailed;
  detail.resend_from = call_.base_length;
  return WithDetail(
      absl::Status(
          cause.code(),
          absl::StrCat("the call was begun but not finished: ", cause.message(),
                       "; expected the drafter to take all of its rows; the session stands at "
                       "row ",
                       call_.base_length, ": resend from row ", call_.base_length)),
      detail);
}

RoundRecord RecordWithoutPass(absl::StatusCode outcome, absl::Time arrival, absl::Time now) {
  RoundRecord record;
  record.outcome = outcome;
  record.queue_wait = record.total = now - arrival;
  return record;
}

}  // namespace aerie
