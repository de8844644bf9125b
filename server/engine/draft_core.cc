#include "server/engine/draft_core.h"

#include <algorithm>
#include <variant>

#include "common/check.h"
#include "server/engine/batcher.h"
#include "server/engine/kv_limits.h"
#include "server/engine/refusals.h"

namespace aerie {

DraftCore::DraftCore(const EngineOptions& options, DraftModel* model, RoundObserver* observer,
                     RowObserver* row_observer)
    : options_(options),
      model_(model),
      observer_(observer),
      row_observer_(row_observer),
      pages_(model->kv_store(), [model](PageId from, PageId to) { model->CopyPage(from, to); }),
      clients_(options_),
      table_(options.session_lease),
      told_kv_(pages_.usage()) {
  for (const absl::Status& status : {options.Validate(), CheckKvFits(options, model->kv_store())}) {
    AERIE_CHECK(status.ok()) << status.ToString();
  }
}

DraftCore::~DraftCore() {
  AERIE_CHECK(rounds_.empty() && table_.size() == 0 && answers_.empty())
      << "the core went away with " << rounds_.size() << " rounds, " << table_.size()
      << " sessions and " << answers_.size() << " answers";
  AERIE_CHECK(pages_.usage().pages_used == 0 && slots_.AllFree() && clients_.size() == 0)
      << "the books still show " << pages_.usage().pages_used << " pages and " << clients_.size()
      << " clients";
}

void DraftCore::Draft(DraftCall call, DraftDone done, absl::Time now) {
  if (call.arrival == absl::InfinitePast()) call.arrival = now;
  if (std::holds_alternative<Manifest>(call.sequence)) {
    ServeStateless(std::move(call), std::move(done), now);
  } else if (const auto& id = std::get<std::string>(call.sequence);
             SessionEntry* entry = table_.Find(id)) {
    QueueDraft(entry, std::move(call), std::move(done), now);
  } else {
    const bool expired = table_.HasExpired(id);
    if (expired) observer_->OnRejected(RejectReason::kLease);
    RefuseDraft(nullptr, call, std::move(done),
                SessionUnknownError(id, expired, options_.session_lease), now);
  }
  TellLoad();
  TellKvUsage();
}

bool DraftCore::FormPass(absl::Time now) {
  AERIE_CHECK(batch_.empty()) << "a pass is under way";
  DropUnwanted(now);
  top_k_ = 1;
  // A plan whose rounds are all refused for want of memory leaves others to run.
  while (batch_.empty() && !rounds_.empty()) FillPass(now);
  pass_start_ = now;
  TellLoad();
  return !batch_.empty();
}

void DraftCore::FillPass(absl::Time now) {
  std::vector<uint64_t> numbers;
  std::vector<PassCandidate> candidates;
  for (const auto& [number, active] : rounds_) {
    numbers.push_back(number);
    candidates.push_back({.extend_rows = active.round.extend_rows_left(),
                          .draft_rows = std::max(1, active.round.draft_rows()),
                          .client = active.client->number,
                          .weight = active.client->weight});
  }
  const PassLimits limits{.max_rows = options_.max_rows_per_pass,
                          .max_sessions = options_.max_sessions_per_pass};
  for (const PassShare& share : PlanPass(candidates, limits, passes_++)) {
    const uint64_t number = numbers[share.candidate];
    const auto place = rounds_.find(number);
    DraftRound& round = place->second.round;
    if (!round.begun() && !BeginRound(place, now)) continue;
    batch_.push_back(round.NextPart(share.rows));
    pass_rounds_.push_back(number);
    if (batch_.back().outputs != Outputs::kNone) top_k_ = std::max(top_k_, round.tokens_read());
  }
}

void DraftCore::RunPass() {
  AERIE_CHECK(!batch_.empty());
  outputs_ = model_->Step(batch_, top_k_);
}

void DraftCore::SettlePass(absl::Time now) {
  AERIE_CHECK(!batch_.empty());
  const std::vector<StepSequence> batch = std::exchange(batch_, {});
  const std::vector<uint64_t> numbers = std::exchange(pass_rounds_, {});
  if (!outputs_.ok()) {
    for (const uint64_t number : numbers) FailRound(rounds_.find(number), outputs_.status(), now);
  } else {
    AERIE_CHECK(outputs_->size() == batch.size()) << outputs_->size() << " of " << batch.size();
    PassRecord pass{
        .sessions = static_cast<int32_t>(batch.size()), .rows = 0, .duration = now - pass_start_};
    for (const StepSequence& part : batch) pass.rows += static_cast<int64_t>(part.tokens.size());
    observer_->OnPass(pass);
    for (size_t i = 0; i < numbers.size(); ++i) {
      const auto place = rounds_.find(numbers[i]);
      DraftRound& round = place->second.round;
      const absl::Status taken = round.TakeOutput((*outputs_)[i], pass.duration, now);
      if (!taken.ok()) {
        FailRound(place, taken, now);
      } else if (round.complete()) {
        FinishRound(place, now);
      }
    }
  }
  TellLoad();
  TellKvUsage();
}

void DraftCore::Shutdown(absl::Time now) {
  const std::vector<SessionEntry*> entries = table_.All();
  for (SessionEntry* entry : entries) CancelWaitingDrafts(entry, DrainingError(), now);
  while (!rounds_.empty()) FailRound(rounds_.begin(), DrainingError(), now);
  // The closes that waited behind those calls have been served by now; what is left nobody closed.
  for (SessionEntry* entry : table_.All()) EndSession(entry, SessionEnd::kShutdown, {}, now);
  TellLoad();
  TellKvUsage();
}

void DraftCore::CountQueued(Client* client, int32_t change) {
  queued_ += change;
  client->queued += change;
}

void DraftCore::TellLoad() {
  const std::pair<int32_t, int32_t> load = {queued_, in_flight_};
  if (load == told_load_) return;
  told_load_ = load;
  observer_->OnLoad(load.first, load.second);
}

void DraftCore::TellKvUsage() {
  const KvUsage usage = pages_.usage();
  if (usage == told_kv_) return;
  told_kv_ = usage;
  observer_->OnKvUsage(usage);
}

}  // namespace aerie
