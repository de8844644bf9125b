// The part of DraftCore that serves the calls of a session, one after the other.
#include <utility>
#include <variant>

#include "common/check.h"
#include "common/error_detail.h"
#include "server/engine/call_check.h"
#include "server/engine/draft_core.h"

namespace aerie {
namespace {

void TellRefusal(const absl::Status& status, RoundObserver* observer) {
  if (absl::IsInvalidArgument(status)) observer->OnRejected(RejectReason::kShape);
  if (absl::IsDeadlineExceeded(status)) observer->OnRejected(RejectReason::kDeadline);
}

}  // namespace

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
    --queued_;
    observer_->OnRound(RecordWithoutPass(absl::StatusCode::kOk, call.arrival, now));
    answers_.push_back([done = std::move(draft.done), answer = session.last_answer()]() mutable {
      done(std::move(answer));
    });
    return;
  }
  const absl::Status status = CheckCall(call, session, options_, model_->spec().vocab_size, now);
  if (!status.ok()) {
    --queued_;
    TellRefusal(status, observer_);
    RefuseDraft(std::move(draft.done), status, call.arrival, now);
    return;
  }
  if (AnswerWithoutPass(call, &session, &draft.done, now)) {
    --queued_;
    return;
  }
  entry->active = draft.arrival_number;
  StartRound(draft.arrival_number, entry, nullptr, std::move(call), std::move(draft.done));
}

void DraftCore::ServeStateless(DraftCall call, DraftDone done, absl::Time now) {
  absl::StatusOr<Session::Setup> setup =
      SetUpSession(std::get<Manifest>(call.sequence), options_.max_k);
  if (!setup.ok()) {
    RefuseDraft(std::move(done), setup.status(), call.arrival, now);
    return;
  }
  auto session = std::make_unique<Session>(*std::move(setup));
  const absl::Status status = CheckCall(call, *session, options_, model_->spec().vocab_size, now);
  if (!status.ok()) {
    TellRefusal(status, observer_);
    RefuseDraft(std::move(done), status, call.arrival, now);
  } else if (!AnswerWithoutPass(call, session.get(), &done, now)) {
    ++queued_;
    ++stateless_;
    StartRound(++arrivals_, nullptr, std::move(session), std::move(call), std::move(done));
    return;
  }
  model_->CloseSlot(session->slot());
}

bool DraftCore::AnswerWithoutPass(const DraftCall& call, Session* session, DraftDone* done,
                                  absl::Time now) {
  RoundRecord record = RecordWithoutPass(absl::StatusCode::kOk, call.arrival, now);
  DraftResult result;
  Settlement settlement;
  if (IsPastContext(call, *session, options_)) {
    settlement = session->NoteUntaken(call.base_length, call.tokens, call.accepted, now);
    result.no_draft_reason = NoDraftReason::kContextLimit;
    record.skipped = SkipReason::kContextLimit;
  } else if (call.tokens.empty()) {
    if (call.base_length < session->length()) {
      model_->Truncate(session->slot(), call.base_length);
    }
    settlement = session->Commit(call.base_length, {}, call.accepted, now);
    result.no_draft_reason = NoDraftReason::kNotAsked;
    record.skipped = SkipReason::kNotAsked;
  } else {
    return false;
  }
  record.committed_tokens = settlement.committed_tokens;
  record.judgement = settlement.judgement;
  record.unreported = settlement.unreported;
  observer_->OnRound(record);
  result.seq = call.seq;
  result.length = session->length();
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
    TellRefusal(status, observer_);
    answers_.push_back([done = std::move(close.done), status = std::move(status)]() mutable {
      done(std::move(status));
    });
    return false;
  }
  const std::string id = entry->session.id();
  auto late_calls = std::exchange(entry->waiting, {});
  SessionRecord record = EndSession(entry, close.end, close.final_tokens, now);
  answers_.push_back(
      [done = std::move(close.done), acceptance = std::move(record.acceptance)]() mutable {
        done(std::move(acceptance));
      });
  // Whoever called after the close finds the session gone.
  for (auto& call : late_calls) {
    absl::Status unknown = SessionUnknownError(id, false, options_.session_lease);
    if (auto* draft = std::get_if<WaitingDraft>(&call)) {
      --queued_;
      RefuseDraft(std::move(draft->done), std::move(unknown), draft->call.arrival, now);
    } else {
      answers_.push_back([done = std::move(std::get<WaitingClose>(call).done),
                          unknown = std::move(unknown)]() mutable { done(std::move(unknown)); });
    }
  }
  return true;
}

void DraftCore::StartRound(uint64_t arrival_number, SessionEntry* entry,
                           std::unique_ptr<Session> stateless, DraftCall call, DraftDone done) {
  Session* session = entry != nullptr ? &entry->session : stateless.get();
  const absl::Time arrival = call.arrival;
  const uint64_t seq = call.seq;
  const auto [place, added] =
      rounds_.emplace(arrival_number, ActiveRound{entry, std::move(stateless),
                                                  DraftRound(std::move(call), session, model_),
                                                  arrival, seq, std::move(done)});
  AERIE_CHECK(added);
}

void DraftCore::FinishRound(RoundMap::iterator place, absl::Time now) {
  ActiveRound& active = place->second;
  RoundRecord record;
  DraftResult result = active.round.Finish(now, &record);
  if (active.entry != nullptr && active.seq != 0) active.entry->session.StoreAnswer(result);
  observer_->OnRound(record);
  answers_.push_back([done = std::move(active.done), result = std::move(result)]() mutable {
    done(std::move(result));
  });
  RemoveRound(place, now);
}

void DraftCore::FailRound(RoundMap::iterator place, const absl::Status& cause, absl::Time now) {
  ActiveRound& active = place->second;
  RoundRecord record;
  absl::Status status = active.round.Fail(cause, now, &record);
  observer_->OnRound(record);
  answers_.push_back([done = std::move(active.done), status = std::move(status)]() mutable {
    done(std::move(status));
  });
  RemoveRound(place, now);
}

void DraftCore::RemoveRound(RoundMap::iterator place, absl::Time now) {
  --(place->second.round.begun() ? in_flight_ : queued_);
  SessionEntry* entry = place->second.entry;
  if (entry == nullptr) {
    --stateless_;
    model_->CloseSlot(place->second.stateless->slot());
  }
  rounds_.erase(place);
  if (entry == nullptr) return;
  entry->active.reset();
  Serve(entry, now);
}

void DraftCore::DropUnwanted(absl::Time now) {
  std::vector<uint64_t> numbers;
  for (const auto& [number, active] : rounds_) numbers.push_back(number);
  for (const uint64_t number : numbers) {
    const auto place = rounds_.find(number);
    const DraftRound& round = place->second.round;
    if (!round.begun()) {
      const absl::Status wanted = round.CheckStillWanted(now);
      if (wanted.ok()) continue;
      TellRefusal(wanted, observer_);
      FailRound(place, wanted, now);
    } else if (round.ShouldStop(now)) {
      FinishRound(place, now);
    }
  }
}

void DraftCore::RefuseDraft(DraftDone done, absl::Status status, absl::Time arrival,
                            absl::Time now) {
  observer_->OnRound(RecordWithoutPass(status.code(), arrival, now));
  answers_.push_back(
      [done = std::move(done), status = std::move(status)]() mutable { done(std::move(status)); });
}

void DraftCore::CancelWaitingDrafts(SessionEntry* entry, const absl::Status& status,
                                    absl::Time now) {
  std::deque<std::variant<WaitingDraft, WaitingClose>> closes;
  for (auto& call : entry->waiting) {
    if (auto* draft = std::get_if<WaitingDraft>(&call)) {
      --queued_;
      RefuseDraft(std::move(draft->done), status, draft->call.arrival, now);
    } else {
      closes.push_back(std::move(call));
    }
  }
  entry->waiting = std::move(closes);
}

}  // namespace aerie
