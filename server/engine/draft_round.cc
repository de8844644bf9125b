#include "server/engine/draft_round.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "common/error_detail.h"
#include "server/engine/call_check.h"
#include "server/engine/kv_limits.h"
#include "server/engine/round_record.h"
#include "server/engine/sampled_tree.h"
#include "server/engine/tree_search.h"

namespace aerie {

DraftRound::DraftRound(DraftCall call, Session* session, RowWatch* watch, const RoundTools& tools)
    : call_(std::move(call)),
      session_(session),
      watch_(watch),
      tools_(tools),
      bytes_(call_.row_bytes.value_or(static_cast<int64_t>(call_.rows.bytes().size()))) {
  AERIE_CHECK(!call_.tokens.empty());
  if (call_.k > 0) most_draft_rows_ = ShapeFor(session->options(), call_.k).DraftRows();
}

int64_t DraftRound::extend_rows_left() const {
  return static_cast<int64_t>(call_.tokens.size()) - extended_;
}

int32_t DraftRound::draft_rows() const {
  return growth_ == nullptr ? 0 : static_cast<int32_t>(growth_->tokens().size());
}

bool DraftRound::complete() const {
  return extend_rows_left() == 0 && (growth_ == nullptr || growth_->done());
}

bool DraftRound::ShouldStop(absl::Time now) const {
  return extend_rows_left() == 0 && !aerie::CheckStillWanted(call_, now).ok();
}

absl::Status DraftRound::CheckStillWanted(absl::Time now) const {
  AERIE_CHECK(!begun_);
  return aerie::CheckStillWanted(call_, now);
}

int64_t DraftRound::FreshPages() const {
  AERIE_CHECK(!begun_);
  return tools_.pages.FreshPagesFor(
      session_->pages(), call_.base_length, end() + most_draft_rows_,
      MostPagesOfSession(tools_.options, tools_.pages.page_rows(), most_draft_rows_));
}

void DraftRound::Begin(absl::Time now) {
  AERIE_CHECK(!begun_);
  begun_ = true;
  timing_.queue = now - call_.arrival - call_.copy_in;
  const bool reserved = tools_.pages.Reserve(
      &session_->pages(), call_.base_length, end() + most_draft_rows_,
      MostPagesOfSession(tools_.options, tools_.pages.page_rows(), most_draft_rows_));
  AERIE_CHECK(reserved) << "a round began without room for its rows";
  slot_ = tools_.slots.Take();
  PlanDraft();
}

void DraftRound::PlanDraft() {
  if (AdaptiveK* adaptive = session_->adaptive(); adaptive != nullptr) {
    if (call_.verify_time.has_value()) {
      adaptive->ObserveVerify(*call_.verify_time, call_.verify_tokens);
    }
    if (call_.k > 0) choice_ = adaptive->Choose(call_.k);
  }
  const int32_t k = choice_.has_value() ? choice_->k : call_.k;
  if (k == 0) return;
  const SessionOptions& options = session_->options();
  if (options.temperature > 0) {
    // The token behind the last row is the root, and stands at that row's index + 1.
    growth_ = std::make_unique<SampledTree>(ShapeFor(options, k), options, /*position=*/end());
  } else {
    growth_ = std::make_unique<TreeSearch>(ShapeFor(options, k));
  }
}

void DraftRound::ObserveDraft(int32_t drafted) {
  AdaptiveK* const adaptive = session_->adaptive();
  // The rows of a prompt take longer than those that a round commits, and come once.
  if (adaptive == nullptr || static_cast<int32_t>(call_.tokens.size()) > session_->max_k() + 1) {
    return;
  }
  adaptive->ObserveDraft(drafted, timing_.extend, timing_.step);
}

StepSequence DraftRound::NextPart(int64_t extend_rows) {
  AERIE_CHECK(begun_ && !complete());
  part_rows_ = extend_rows;
  StepSequence part;
  part.slot = slot_;
  part.visible = session_->visible();
  int64_t first = 0;
  if (extend_rows > 0) {
    AERIE_CHECK(extend_rows <= extend_rows_left());
    first = part.length = call_.base_length + extended_;
    part.tokens = absl::MakeConstSpan(call_.tokens)
                      .subspan(static_cast<size_t>(extended_), static_cast<size_t>(extend_rows));
    part.aux = call_.rows.Slice(extended_, extend_rows);
    part.fused = call_.fused;
    const bool last = extend_rows == extend_rows_left();
    part.outputs = last && growth_ != nullptr ? Outputs::kLast : Outputs::kNone;
  } else {
    AERIE_CHECK(extend_rows_left() == 0 && draft_rows() > 0);
    part.length = end();
    first = end() + drafted_;
    part.tokens = growth_->tokens();
    part.parents = growth_->parents();
    part.outputs = Outputs::kEvery;
  }
  tools_.pages.MakeWritable(&session_->pages(), first,
                            first + static_cast<int64_t>(part.tokens.size()));
  part.pages = session_->pages().pages();
  return part;
}

absl::Status DraftRound::TakeOutput(const StepOutput& output, absl::Duration pass_time,
                                    absl::Time now) {
  const bool was_draft = part_rows_ == 0;
  (was_draft ? timing_.step : timing_.extend) += pass_time;
  size_t wanted = static_cast<size_t>(draft_rows());
  if (was_draft) {
    drafted_ += draft_rows();
  } else {
    extended_ += part_rows_;
    tools_.pages.DropUnseen(&session_->pages(), session_->visible(),
                            call_.base_length + extended_ - RollbackRows(tools_.options));
    if (extend_rows_left() > 0) return absl::OkStatus();
    if (watch_ != nullptr) watch_->OnRows(call_.base_length, call_.tokens, call_.rows, now);
    call_.rows = HiddenRows();
    call_.rows_owner.reset();
    if (growth_ == nullptr) return absl::OkStatus();
    wanted = 1;
  }
  AERIE_CHECK(output.rows.size() == wanted)
      << "the drafter gave " << output.rows.size() << " outputs of " << wanted << " wanted rows";
  for (const RowOutput& row : output.rows) {
    if (absl::Status status = CheckOutput(row); !status.ok()) return status;
  }
  growth_->Grow(output.rows);
  return absl::OkStatus();
}

absl::Status DraftRound::CheckOutput(const RowOutput& row) const {
  if (!row.finite) {
    return WithReason(
        absl::InvalidArgumentError(absl::StrCat(
            "the drafter's scores behind row ", end() - 1 + growth_->level(),
            " are NaN or infinite; expected hidden states that it can compute with; check where "
            "they are captured, and open a new session if earlier rows were too large as well")),
        kReasonNonFinite);
  }
  AERIE_CHECK(row.top.size() >= static_cast<size_t>(tokens_read()))
      << "the drafter gave " << row.top.size() << " tokens of " << tokens_read();
  // An id that came out of NaN or infinite logits is noise, and may lie anywhere.
  const int32_t vocab_size = tools_.model.spec().vocab_size;
  for (const ScoredToken& token :
       absl::MakeConstSpan(row.top).first(static_cast<size_t>(tokens_read()))) {
    if (token.token >= 0 && token.token < vocab_size && std::isfinite(token.log_prob)) continue;
    return absl::InternalError(
        absl::StrCat("its output was token ", token.token, " with log-probability ", token.log_prob,
                     ", expected 0..", vocab_size - 1, " with a finite one"));
  }
  return absl::OkStatus();
}

DraftResult DraftRound::Finish(absl::Time now, RoundRecord* record) {
  AERIE_CHECK(begun_ && extend_rows_left() == 0);
  LetGo(end());
  Settlement settlement = session_->Commit(call_.base_length, call_.tokens, call_.accepted, now);
  DraftResult result;
  if (growth_ != nullptr) result.tree = growth_->Tree();
  ObserveDraft(result.tree.size());
  if (call_.k == 0) {
    result.no_draft_reason = NoDraftReason::kNotAsked;
  } else if (growth_ != nullptr && !growth_->done()) {
    result.no_draft_reason = NoDraftReason::kDeadline;
  } else if (choice_.has_value() && choice_->k < call_.k) {
    result.no_draft_reason = NoDraftReason::kNotWorthwhile;
  }
  result.k_choice = choice_;
  if (!result.tree.empty()) {
    const auto lost = session_->Propose(result.tree);
    if (lost.has_value()) settlement.unreported = lost;
  }
  timing_.total = now - call_.arrival;
  result.seq = call_.seq;
  result.length = session_->length();
  result.method = MethodOf(session_->options());
  result.extras = session_->options().extras;
  if (settlement.judgement.has_value()) result.accepted = settlement.judgement->accepted;
  result.timing = timing_;

  record->copy_in = call_.copy_in;
  record->queue_wait = timing_.queue;
  record->extend_time = timing_.extend;
  record->step_time = timing_.step;
  record->total = timing_.total;
  record->verify_time = call_.verify_time;
  if (choice_.has_value()) record->chosen_k = choice_->k;
  record->rows = static_cast<int64_t>(call_.tokens.size());
  record->bytes = bytes_;
  record->shared_memory = call_.shared_memory;
  record->proposed = result.tree.size();
  record->depth = DepthOf(result.tree);
  record->committed_tokens = settlement.committed_tokens;
  record->judgement = settlement.judgement;
  record->unreported = settlement.unreported;
  record->skipped = SkipReasonOf(result.no_draft_reason);
  return result;
}

absl::Status DraftRound::Fail(const absl::Status& cause, absl::Time now, RoundRecord* record) {
  *record = RecordWithoutPass(cause.code(), call_, now);
  if (!begun_) return cause;
  record->queue_wait = timing_.queue;
  record->extend_time = timing_.extend;
  record->step_time = timing_.step;
  // With a draft window the rows of a long call may have pushed out what the first of them saw.
  const int64_t row =
      tools_.pages.ResumeFrom(session_->pages(), session_->visible(), call_.base_length);
  LetGo(row);
  session_->RollBackTo(row);
  ErrorDetail detail = DetailOf(cause);
  if (detail.reason.empty()) detail.reason = kReasonPassFailed;
  detail.resend_from = row;
  return WithDetail(
      absl::Status(
          cause.code(),
          absl::StrCat("the call was begun but not finished: ", cause.message(),
                       "; expected the drafter to take all of its rows; the session stands at "
                       "row ",
                       row, ": resend from row ", row)),
      detail);
}

void DraftRound::LetGo(int64_t length) {
  tools_.pages.Truncate(&session_->pages(), length);
  tools_.pages.Trim(&session_->pages());
  tools_.model.ReleaseSlot(slot_);
  tools_.slots.Give(slot_);
}

}  // namespace aerie
