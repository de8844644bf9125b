// The part of DraftCore that takes a call's round from its start to its answer.
#include <utility>

#include "common/check.h"
#include "server/engine/draft_core.h"
#include "server/engine/refusals.h"

namespace aerie {

void DraftCore::StartRound(uint64_t arrival_number, SessionEntry* entry,
                           std::unique_ptr<Session> stateless,
                           std::unique_ptr<RowWatch> stateless_watch, Client* client,
                           DraftCall call, DraftDone done) {
  Session* session = entry != nullptr ? &entry->session : stateless.get();
  RowWatch* watch = entry != nullptr ? entry->watch.get() : stateless_watch.get();
  const absl::Time arrival = call.arrival;
  const uint64_t seq = call.seq;
  const RoundTools tools{options_, *model_, pages_, slots_};
  const auto [place, added] = rounds_.emplace(
      arrival_number, ActiveRound{entry, std::move(stateless), std::move(stateless_watch), client,
                                  DraftRound(std::move(call), session, watch, tools), arrival, seq,
                                  std::move(done)});
  AERIE_CHECK(added);
}

void DraftCore::FinishRound(RoundMap::iterator place, absl::Time now) {
  ActiveRound& active = place->second;
  RoundRecord record;
  DraftResult result = active.round.Finish(now, &record);
  if (active.entry != nullptr && active.seq != 0) active.entry->session.StoreAnswer(result);
  TellRound(active.entry, record);
  if (active.watch() != nullptr && record.judgement.has_value()) {
    active.watch()->OnJudgement(*record.judgement, now);
  }
  answers_.push_back([done = std::move(active.done), result = std::move(result)]() mutable {
    done(std::move(result));
  });
  RemoveRound(place, now);
}

void DraftCore::FailRound(RoundMap::iterator place, const absl::Status& cause, absl::Time now) {
  ActiveRound& active = place->second;
  RoundRecord record;
  absl::Status status = active.round.Fail(cause, now, &record);
  TellRound(active.entry, record);
  answers_.push_back([done = std::move(active.done), status = std::move(status)]() mutable {
    done(std::move(status));
  });
  RemoveRound(place, now);
}

void DraftCore::RemoveRound(RoundMap::iterator place, absl::Time now) {
  ActiveRound& active = place->second;
  if (active.round.begun()) {
    --in_flight_;
  } else {
    CountQueued(active.client, -1);
  }
  SessionEntry* entry = active.entry;
  if (entry == nullptr) {
    --stateless_;
    pages_.Release(&active.stateless->pages());
    LeavePlace(active.client, active.stateless->target_id());
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
      TellRefusal(wanted);
      FailRound(place, wanted, now);
    } else if (round.ShouldStop(now)) {
      FinishRound(place, now);
    }
  }
}

bool DraftCore::BeginRound(RoundMap::iterator place, absl::Time now) {
  ActiveRound& active = place->second;
  const int64_t fresh = active.round.FreshPages();
  if (!MakeRoom(fresh)) {
    observer_->OnRejected(RejectReason::kKvMemory);
    FailRound(place, KvMemoryError(fresh, pages_.usage().pages_total), now);
    return false;
  }
  CountQueued(active.client, -1);
  ++in_flight_;
  active.round.Begin(now);
  return true;
}

}  // namespace aerie
