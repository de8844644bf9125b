// The engine without its thread: a state machine that is handed calls, passes and the time.
//
// Nothing here runs a callback: answers are collected and whoever drives the core runs them, so a
// callback may come back with its next call at once. Between FormPass() and SettlePass() no other
// function may be called but RunPass() and the ones that only look.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/engine/client_book.h"
#include "server/engine/draft_call.h"
#include "server/engine/draft_model.h"
#include "server/engine/draft_round.h"
#include "server/engine/kv_pages.h"
#include "server/engine/round_observer.h"
#include "server/engine/row_observer.h"
#include "server/engine/session_table.h"
#include "server/engine/slot_pool.h"

namespace aerie {

// Engine thread only.
class DraftCore {
 public:
  using Answer = absl::AnyInvocable<void()>;

  // `options` must be valid and fit the model's store (CheckKvFits); `model`, `observer` and
  // `row_observer`, which may be null, must outlive the core.
  DraftCore(const EngineOptions& options, DraftModel* model, RoundObserver* observer,
            RowObserver* row_observer = nullptr);
  // Shutdown() must have been called, if any session was opened.
  ~DraftCore();

  // As DraftEngine's, without its door: calls wait without a limit but their client's.
  void Open(const Manifest& manifest, const SessionOptions& options, OpenDone done, absl::Time now);
  void Draft(DraftCall call, DraftDone done, absl::Time now);
  void Close(const std::string& session_id, std::vector<int32_t> final_tokens, SessionEnd end,
             CloseDone done, absl::Time now);

  // Closes the sessions whose lease ran out.
  void ExpireLeases(absl::Time now);
  // When the next lease runs out, if no call comes before.
  absl::Time NextExpiry() const { return table_.NextExpiry(); }

  // Plans the next pass. False: there is nothing to run.
  bool FormPass(absl::Time now);
  // Runs the model over the pass that was formed. Takes long, changes nothing that can be asked for
  // here.
  void RunPass();
  // Takes in what the pass gave.
  void SettlePass(absl::Time now);

  // Whether an observer of rows wants some to be scored, which is for when there is nothing else to
  // do. Then RunTrial() does it: takes as long as a pass of its rows.
  bool PrepareTrial();
  void RunTrial(absl::Time now);

  // Answers every call that is left with UNAVAILABLE, closes every session.
  void Shutdown(absl::Time now);

  // What has been decided since the last time, in order. Each must be run once.
  std::vector<Answer> TakeAnswers() { return std::exchange(answers_, {}); }

  bool HasWork() const { return !rounds_.empty(); }
  int32_t queued() const { return queued_; }        // draft calls that wait for their first pass
  int32_t in_flight() const { return in_flight_; }  // draft calls that passes have taken rows of
  int32_t sessions() const { return static_cast<int32_t>(table_.size()); }
  KvUsage kv_usage() const { return pages_.usage(); }

 private:
  struct ActiveRound {
    SessionEntry* entry;                 // nullptr: a stateless call
    std::unique_ptr<Session> stateless;  // its session
    std::unique_ptr<RowWatch> stateless_watch;
    Client* client;
    DraftRound round;
    absl::Time arrival;
    uint64_t seq;
    DraftDone done;

    const Session& session() const { return entry != nullptr ? entry->session : *stateless; }
    RowWatch* watch() const {
      return entry != nullptr ? entry->watch.get() : stateless_watch.get();
    }
  };
  using RoundMap = std::map<uint64_t, ActiveRound>;

  // Checks whether a session of `manifest` may be opened, and what it asks for.
  absl::StatusOr<Session::Setup> SetUpSession(const Manifest& manifest,
                                              const SessionOptions& options);
  // Counts a session, or a stateless call, for its client and target. RESOURCE_EXHAUSTED: there is
  // no place.
  absl::StatusOr<Client*> TakePlace(const std::string& client, const std::string& target);
  void LeavePlace(Client* client, const std::string& target);
  // Whose quota the sessions of a target count for; null: nobody's.
  TargetShare* ShareOf(const std::string& target) const;
  // Counts the rows of a call that is about to be served. RESOURCE_EXHAUSTED: its target has
  // brought too many.
  absl::Status TakeRows(const DraftCall& call, const Session& session, absl::Time now);
  absl::StatusOr<OpenResult> OpenSession(const Manifest& manifest, const SessionOptions& options,
                                         absl::Time now);
  // The session that `options` wants to fork, when it can be; nullptr: it wants none.
  absl::StatusOr<SessionEntry*> FindForked(const SessionOptions& options);

  // Puts a call behind the others of its session, unless too many of its client's wait.
  void QueueDraft(SessionEntry* entry, DraftCall call, DraftDone done, absl::Time now);
  // Serves the calls of `entry` until one needs a pass or none is left. May end the session.
  void Serve(SessionEntry* entry, absl::Time now);
  void ServeDraft(SessionEntry* entry, WaitingDraft draft, absl::Time now);
  // False: the session goes on.
  bool ServeClose(SessionEntry* entry, WaitingClose close, absl::Time now);
  void ServeStateless(DraftCall call, DraftDone done, absl::Time now);

  // A checked call whose answer needs no pass; false: it needs one. `entry` as in TellRound().
  bool AnswerWithoutPass(const DraftCall& call, SessionEntry* entry, Session* session,
                         DraftDone* done, absl::Time now);
  // Of a stateless call `entry` is null, of others `stateless` and its watch.
  void StartRound(uint64_t arrival_number, SessionEntry* entry, std::unique_ptr<Session> stateless,
                  std::unique_ptr<RowWatch> stateless_watch, Client* client, DraftCall call,
                  DraftDone done);
  void FinishRound(RoundMap::iterator place, absl::Time now);
  void FailRound(RoundMap::iterator place, const absl::Status& cause, absl::Time now);
  // Takes the round out and goes on with its session.
  void RemoveRound(RoundMap::iterator place, absl::Time now);
  // Finishes or refuses the rounds that nobody waits for.
  void DropUnwanted(absl::Time now);
  // Makes a plan and puts the parts of its rounds into the batch.
  void FillPass(absl::Time now);
  // Begins a round that is in the next pass for the first time. False: there was no memory for it,
  // and it has been refused.
  bool BeginRound(RoundMap::iterator place, absl::Time now);
  // Frees pages of idle sessions until so many are free. False: that cannot be, and none was freed.
  bool MakeRoom(int64_t pages);

  // Empty when the trial cannot be run.
  std::vector<float> Score(const Trial& trial);
  // Null when nobody wants to watch.
  std::unique_ptr<RowWatch> Watch(const WatchedRows& rows, absl::Time now);
  void TellRefusal(const absl::Status& status);
  // `entry`: the session's, of which the call is one; nullptr: of none that is still there.
  void TellRound(SessionEntry* entry, const RoundRecord& record);
  void RefuseDraft(SessionEntry* entry, const DraftCall& call, DraftDone done, absl::Status status,
                   absl::Time now);
  void CancelWaitingDrafts(SessionEntry* entry, const absl::Status& status, absl::Time now);
  SessionRecord EndSession(SessionEntry* entry, SessionEnd end,
                           absl::Span<const int32_t> final_tokens, absl::Time now);
  void CountQueued(Client* client, int32_t change);
  void TellLoad();
  void TellKvUsage();

  const EngineOptions options_;
  DraftModel* const model_;
  RoundObserver* const observer_;
  RowObserver* const row_observer_;  // may be null
  KvPages pages_;
  SlotPool slots_;
  ClientBook clients_;
  SessionTable table_;
  RoundMap rounds_;  // one for each session with an active call, in order of arrival
  uint64_t arrivals_ = 0;
  int32_t stateless_ = 0;  // of rounds_
  int32_t queued_ = 0;
  int32_t in_flight_ = 0;
  std::pair<int32_t, int32_t> told_load_ = {0, 0};
  KvUsage told_kv_;
  std::vector<Answer> answers_;
  std::optional<Trial> trial_;  // the next one

  // The pass under way.
  uint64_t passes_ = 0;
  int32_t top_k_ = 1;
  std::vector<uint64_t> pass_rounds_;
  std::vector<StepSequence> batch_;
  absl::StatusOr<std::vector<StepOutput>> outputs_;
  absl::Time pass_start_;
};

}  // namespace aerie
