#include "server/engine/draft_core.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "common/error_detail.h"
#include "common/status_macros.h"
#include "server/engine/batcher.h"
#include "server/engine/call_check.h"

namespace aerie {

DraftCore::DraftCore(const EngineOptions& options, DraftModel* model, RoundObserver* observer)
    : options_(options), model_(model), observer_(observer), table_(options.session_lease) {
  AERIE_CHECK(options.Validate().ok()) << options.Validate().ToString();
}

DraftCore::~DraftCore() {
  AERIE_CHECK(rounds_.empty() && table_.size() == 0 && answers_.empty())
      << "the core went away with " << rounds_.size() << " rounds, " << table_.size()
      << " sessions and " << answers_.size() << " answers";
}

absl::StatusOr<Session::Setup> DraftCore::SetUpSession(const Manifest& manifest, int32_t max_k) {
  if (absl::Status fits = CheckFits(manifest, model_->spec().requirement()); !fits.ok()) {
    observer_->OnRejected(RejectReason::kWiring);
    return fits;
  }
  if (sessions() + stateless_ >= options_.max_sessions) {
    observer_->OnRejected(RejectReason::kQuota);
    return SessionLimitError(options_.max_sessions);
  }
  absl::StatusOr<SlotId> slot = model_->OpenSlot();
  if (!slot.ok()) {
    if (!absl::IsResourceExhausted(slot.status())) return slot.status();
    observer_->OnRejected(RejectReason::kQuota);
    return SessionLimitError(sessions() + stateless_);
  }
  return Session::Setup{.id = "",
                        .slot = *slot,
                        .dtype = manifest.dtype,
                        .row_width = manifest.row_width(),
                        .max_k = max_k};
}

void DraftCore::Open(const Manifest& manifest, const SessionOptions& options, OpenDone done,
                     absl::Time now) {
  const auto open = [&]() -> absl::StatusOr<OpenResult> {
    if (options.max_k < 0) {
      return WithReason(absl::InvalidArgumentError(
                            absl::StrCat("max_k is ", options.max_k, "; expected 0..",
                                         options_.max_k, "; leave it out for the server's limit")),
                        kReasonKOutOfRange);
    }
    const int32_t max_k =
        options.max_k == 0 ? options_.max_k : std::min(options.max_k, options_.max_k);
    AERIE_ASSIGN_OR_RETURN(Session::Setup setup, SetUpSession(manifest, max_k));
    setup.id = NewSessionId();
    const SessionEntry* entry = table_.Add(std::move(setup), now);
    observer_->OnSessionOpened();
    return OpenResult{entry->session.id(), max_k, options_.session_lease};
  };
  answers_.push_back([done = std::move(done), result = open()]() mutable { done(result); });
}

void DraftCore::Draft(DraftCall call, DraftDone done, absl::Time now) {
  if (call.arrival == absl::InfinitePast()) call.arrival = now;
  if (std::holds_alternative<Manifest>(call.sequence)) {
    ServeStateless(std::move(call), std::move(done), now);
  } else if (const auto& id = std::get<std::string>(call.sequence);
             SessionEntry* entry = table_.Find(id)) {
    table_.MarkBusy(entry);
    ++queued_;
    entry->waiting.push_back(WaitingDraft{++arrivals_, std::move(call), std::move(done)});
    Serve(entry, now);
  } else {
    const bool expired = table_.HasExpired(id);
    if (expired) observer_->OnRejected(RejectReason::kLease);
    RefuseDraft(std::move(done), SessionUnknownError(id, expired, options_.session_lease),
                call.arrival, now);
  }
  TellLoad();
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
}

void DraftCore::ExpireLeases(absl::Time now) {
  while (SessionEntry* entry = table_.FindExpired(now)) {
    table_.RememberExpired(entry->session.id());
    EndSession(entry, SessionEnd::kLease, {}, now);
  }
}

bool DraftCore::FormPass(absl::Time now) {
  AERIE_CHECK(batch_.empty()) << "a pass is under way";
  DropUnwanted(now);
  std::vector<uint64_t> numbers;
  std::vector<int64_t> rows_left;
  for (const auto& [number, active] : rounds_) {
    numbers.push_back(number);
    rows_left.push_back(active.round.extend_rows_left());
  }
  const PassLimits limits{options_.max_rows_per_pass, options_.max_sessions_per_pass};
  for (const PassShare& share : PlanPass(rows_left, limits)) {
    DraftRound& round = rounds_.at(numbers[share.candidate]).round;
    if (!round.begun()) {
      --queued_;
      ++in_flight_;
    }
    batch_.push_back(round.NextPart(share.rows, now));
    pass_rounds_.push_back(numbers[share.candidate]);
  }
  pass_start_ = now;
  TellLoad();
  return !batch_.empty();
}

void DraftCore::RunPass() {
  AERIE_CHECK(!batch_.empty());
  outputs_ = model_->Step(batch_, /*top_k=*/1);
}

void DraftCore::SettlePass(absl::Time now) {
  AERIE_CHECK(!batch_.empty());
  const std::vector<StepSequence> batch = std::exchange(batch_, {});
  const std::vector<uint64_t> numbers = std::exchange(pass_rounds_, {});
  if (!outputs_.ok()) {
    for (const uint64_t number : numbers) FailRound(rounds_.find(number), outputs_.status(), now);
    TellLoad();
    return;
  }
  AERIE_CHECK(outputs_->size() == batch.size()) << outputs_->size() << " of " << batch.size();
  PassRecord pass{
      .sessions = static_cast<int32_t>(batch.size()), .rows = 0, .duration = now - pass_start_};
  for (const StepSequence& part : batch) pass.rows += static_cast<int64_t>(part.tokens.size());
  observer_->OnPass(pass);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto place = rounds_.find(numbers[i]);
    DraftRound& round = place->second.round;
    const absl::Status taken = round.TakeOutput((*outputs_)[i], pass.duration);
    if (!taken.ok()) {
      FailRound(place, taken, now);
    } else if (round.complete()) {
      FinishRound(place, now);
    }
  }
  TellLoad();
}

void DraftCore::Shutdown(absl::Time now) {
  const std::vector<SessionEntry*> entries = table_.All();
  for (SessionEntry* entry : entries) CancelWaitingDrafts(entry, DrainingError(), now);
  while (!rounds_.empty()) FailRound(rounds_.begin(), DrainingError(), now);
  // The closes that waited behind those calls have been served by now; what is left nobody closed.
  for (SessionEntry* entry : table_.All()) EndSession(entry, SessionEnd::kShutdown, {}, now);
  TellLoad();
}

SessionRecord DraftCore::EndSession(SessionEntry* entry, SessionEnd end,
                                    absl::Span<const int32_t> final_tokens, absl::Time now) {
  const SessionRecord record = entry->session.End(end, final_tokens, now);
  model_->CloseSlot(entry->session.slot());
  table_.Erase(entry);
  observer_->OnSessionEnded(record);
  return record;
}

void DraftCore::TellLoad() {
  const std::pair<int32_t, int32_t> load = {queued_, in_flight_};
  if (load == told_load_) return;
  told_load_ = load;
  observer_->OnLoad(load.first, load.second);
}

}  // namespace aerie
