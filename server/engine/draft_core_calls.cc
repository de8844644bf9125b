// The part of DraftCore that serves the calls of a session, one after the other.
#include <utility>
#include <variant>

#include "common/check.h"
#include "common/error_detail.h"
#include "server/engine/call_check.h"
#include "server/engine/draft_core.h"
#include "server/engine/refusals.h"
#include "server/engine/round_record.h"

namespace aerie {

void DraftCore::TellRefusal(const absl::Status& status) {
  if (absl::IsInvalidArgument(status)) observer_->OnRejected(RejectReason::kShape);
  if (absl::IsDeadlineExceeded(status)) observer_->OnRejected(RejectReason::kDeadline);
}

void DraftCore::QueueDraft(SessionEntry* entry, DraftCall call, DraftDone done, absl::Time now) {
  if (absl::Status fits = clients_.CheckQueue(*entry->client); !fits.ok()) {
    observer_->OnRejected(RejectReason::kQuota);
    RefuseDraft(entry, call, std::move(done), std::move(fits), now);
    return;
  }
  table_.MarkBusy(entry);
  CountQueued(entry->client, 1);
  entry->waiting.push_back(WaitingDraft{++arrivals_, std::move(call), std::move(done)});
  Serve(entry, now);
}

void DraftCore::Close(const std::string& session_id, std::vector<int32_t> final_tokens,
                      SessionEnd end, CloseDone done, absl::Time now) {
  SessionEntry* entry = table_.Find(session_id);
  if (entry == nullptr) {
    absl::Status status =
        SessionUnknownError(session_id, table_.HasExpired(session_id), options_.session_lease);
    answers_.push_back([done = std::move(done), status = std::move(status)]() mutable {
      done(std::move(status));
    });
    return;
  }
  table_.MarkBusy(entry);
  if (end == SessionEnd::kStreamClosed) {
    CancelWaitingDrafts(entry, CancelledByStreamError(), now);
  }
  entry->waiting.push_back(WaitingClose{std::move(final_tokens), end, std::move(done)});
  if (end == SessionEnd::kStreamClosed && entry->active.has_value()) {
    // Nobody is left to read its answer; this also serves the close.
    FailRound(rounds_.find(*entry->active), CancelledByStreamError(), now);
  } else {
    Serve(entry, now);
  }
  TellLoad();
  TellKvUsage();
}

void DraftCore::Serve(SessionEntry* entry, absl::Time now) {
  while (!entry->active.has_value() && !entry->waiting.empty()) {
    auto next = std::move(entry->waiting.front());
    entry->waiting.pop_front();
    if (auto* draft = std::get_if<WaitingDraft>(&next)) {
      ServeDraft(entry, std::move(*draft), now);
    } else if (ServeClose(entry, std::move(std::get<WaitingClose>(next)), now)) {
      return;
    }
  }
  if (!entry->active.has_value()) table_.MarkIdle(entry, now);
}

void DraftCore::ServeDraft(SessionEntry* entry, WaitingDraft draft, absl::Time now) {
  Session& session = entry->session;
  DraftCall& call = draft.call;
  if (IsRepeat(call, session)) {
    CountQueued(entry->client, -1);
    TellRound(entry, RecordWithoutPass(absl::StatusCode::kOk, call, now));
    answers_.push_back([done = std::move(draft.done), answer = session.last_answer()]() mutable {
      done(std::move(answer));
    });
    return;
  }
  const absl::Status status =
      CheckCall(call, session, pages_, options_, model_->spec().vocab_size, now);
  if (!status.ok()) {
    CountQueued(entry->client, -1);
    TellRefusal(status);
    RefuseDraft(entry, call, std::move(draft.done), status, now);
    return;
  }
  if (AnswerWithoutPass(call, entry, &session, &draft.done, now)) {
    CountQueued(entry->client, -1);
    return;
  }
  if (absl::Status taken = TakeRows(call, session, now); !taken.ok()) {
    CountQueued(entry->client, -1);
    RefuseDraft(entry, call, std::move(draft.done), std::move(taken), now);
    return;
  }
  entry->active = draft.arrival_number;
  StartRound(draft.arrival_number, entry, nullptr, nullptr, entry->client, std::move(call),
             std::move(draft.done));
}

void DraftCore::ServeStateless(DraftCall call, DraftDone done, absl::Time now) {
  absl::StatusOr<Session::Setup> setup = SetUpSession(std::get<Manifest>(call.sequence), {});
  if (!setup.ok()) {
    RefuseDraft(nullptr, call, std::move(done), setup.status(), now);
    return;
  }
  auto session = std::make_unique<Session>(*std::move(setup));
  const absl::Status status =
      CheckCall(call, *session, pages_, options_, model_->spec().vocab_size, now);
  if (!status.ok()) {
    TellRefusal(status);
    RefuseDraft(nullptr, call, std::move(done), status, now);
    return;
  }
  if (AnswerWithoutPass(call, nullptr, session.get(), &done, now)) return;
  const std::string& target = session->target_id();
  const absl::StatusOr<Client*> client = TakePlace(call.client, target);
  if (!client.ok()) {
    RefuseDraft(nullptr, call, std::move(done), client.status(), now);
    return;
  }
  absl::Status fits = clients_.CheckQueue(**client);
  if (!fits.ok()) {
    observer_->OnRejected(RejectReason::kQuota);
  } else {
    fits = TakeRows(call, *session, now);
  }
  if (!fits.ok()) {
    LeavePlace(*client, target);
    RefuseDraft(nullptr, call, std::move(done), std::move(fits), now);
    return;
  }
  CountQueued(*client, 1);
  ++stateless_;
  auto watch = Watch({.client = call.client,
                      .manifest = std::get<Manifest>(call.sequence),
                      .first_row = 0,
                      .stateless = true},
                     now);
  StartRound(++arrivals_, nullptr, std::move(session), std::move(watch), *client, std::move(call),
             std::move(done));
}

bool DraftCore::AnswerWithoutPass(const DraftCall& call, SessionEntry* entry, Session* session,
                                  DraftDone* done, absl::Time now) {
  RoundRecord record = RecordWithoutPass(absl::StatusCode::kOk, call, now);
  DraftResult result;
  Settlement settlement;
  if (IsPastContext(call, *session, options_)) {
    settlement = session->NoteUntaken(call.base_length, call.tokens, call.accepted, now);
    result.no_draft_reason = NoDraftReason::kContextLimit;
  } else if (call.tokens.empty()) {
    pages_.Truncate(&session->pages(), call.base_length);
    pages_.Trim(&session->pages());
    settlement = session->Commit(call.base_length, {}, call.accepted, now);
    result.no_draft_reason = NoDraftReason::kNotAsked;
  } else {
    return false;
  }
  record.skipped = SkipReasonOf(result.no_draft_reason);
  record.committed_tokens = settlement.committed_tokens;
  record.judgement = settlement.judgement;
  record.unreported = settlement.unreported;
  record.verify_time = call.verify_time;
  TellRound(entry, record);
  if (entry != nullptr && entry->watch != nullptr && record.judgement.has_value()) {
    entry->watch->OnJudgement(*record.judgement, now);
  }
  result.seq = call.seq;
  result.length = session->length();
  result.method = MethodOf(session->options());
  result.extras = session->options().extras;
  if (settlement.judgement.has_value()) result.accepted = settlement.judgement->accepted;
  result.timing.queue = record.queue_wait;
  result.timing.total = record.total;
  if (call.seq != 0) session->StoreAnswer(result);
  answers_.push_back(
      [done = std::move(*done), result = std::move(result)]() mutable { done(std::move(result)); });
  return true;
}

bool DraftCore::ServeClose(SessionEntry* entry, WaitingClose close, absl::Time now) {
  absl::Status status =
      CheckTokens("final_token_ids", close.final_tokens, model_->spec().vocab_size);
  if (!status.ok()) {
    TellRefusal(status);
    answers_.push_back([done = std::move(close.done), status = std::move(status)]() mutable {
      done(std::move(status));
    });
    return false;
  }
  const std::string id = entry->session.id();
  auto late_calls = std::exchange(entry->waiting, {});
  for (const auto& call : late_calls) {
    if (std::holds_alternative<WaitingDraft>(call)) CountQueued(entry->client, -1);
  }
  SessionRecord record = EndSession(entry, close.end, close.final_tokens, now);
  answers_.push_back(
      [done = std::move(close.done), acceptance = std::move(record.acceptance)]() mutable {
        done(std::move(acceptance));
      });
  // Whoever called after the close finds the session gone.
  for (auto& call : late_calls) {
    absl::Status unknown = SessionUnknownError(id, false, options_.session_lease);
    if (auto* draft = std::get_if<WaitingDraft>(&call)) {
      RefuseDraft(nullptr, draft->call, std::move(draft->done), std::move(unknown), now);
    } else {
      answers_.push_back([done = std::move(std::get<WaitingClose>(call).done),
                          unknown = std::move(unknown)]() mutable { done(std::move(unknown)); });
    }
  }
  return true;
}

void DraftCore::TellRound(SessionEntry* entry, const RoundRecord& record) {
  if (entry != nullptr) entry->session.CountCall(record);
  observer_->OnRound(record);
}

void DraftCore::RefuseDraft(SessionEntry* entry, const DraftCall& call, DraftDone done,
                            absl::Status status, absl::Time now) {
  TellRound(entry, RecordWithoutPass(status.code(), call, now));
  answers_.push_back(
      [done = std::move(done), status = std::move(status)]() mutable { done(std::move(status)); });
}

void DraftCore::CancelWaitingDrafts(SessionEntry* entry, const absl::Status& status,
                                    absl::Time now) {
  std::deque<std::variant<WaitingDraft, WaitingClose>> closes;
  for (auto& call : entry->waiting) {
    if (auto* draft = std::get_if<WaitingDraft>(&call)) {
      CountQueued(entry->client, -1);
      RefuseDraft(entry, draft->call, std::move(draft->done), status, now);
    } else {
      closes.push_back(std::move(call));
    }
  }
  entry->waiting = std::move(closes);
}

}  // namespace aerie
