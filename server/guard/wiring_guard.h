// The live guard: do the rows that workers send fit the wiring that was measured?
//
//   WiringGuard guard({.profile = ..., .captures = wiring.size()});
//   auto watch = guard.Watch(client, target, now);         // with the session
//   watch->OnRows(base_length, tokens, rows, now);         // of each call, once it is taken
//   watch->OnJudgement(proposed, accepted, worker, now);   // of each judged proposal
//   watch.reset();                                         // with the session
//
// It samples: one row of a round, one in eight of a prompt, a few microseconds each. What it costs,
// what it sees and what it cannot see is in docs/wiring-guard.md.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/hidden_rows.h"
#include "common/mutex.h"
#include "common/wiring_report.h"
#include "server/guard/guard_profile.h"
#include "server/guard/guard_thresholds.h"
#include "server/guard/replay.h"
#include "server/guard/row_sketch.h"
#include "server/guard/source_watch.h"
#include "server/guard/wiring_observer.h"

namespace aerie {

struct GuardOptions {
  std::optional<GuardProfile> profile;  // absent: every source stays unknown
  int32_t captures = 0;                 // of the drafter's wiring; with a profile: its places
  GuardThresholds thresholds;
  // Whether the owner answers replays; otherwise none are asked for.
  bool replay = false;
  // A source without a session for so long is forgotten with all that was found: a worker that is
  // gone must not be held against those that are here.
  absl::Duration forget_after = absl::Minutes(15);
  // Called on the engine thread when a source's state has changed, with the one before. May be
  // empty.
  std::function<void(const WiringReport&, WiringState)> on_change;
  // Called when the worst state of all sources has changed, like an observer. May be empty.
  std::function<void(WiringState)> on_worst;
  WiringObserver* observer = nullptr;  // may be null; else outlives the guard
};

class WiringGuard;

// The guard's eye on one session; ends with it and before the guard. Engine thread only.
class SessionWatch {
 public:
  ~SessionWatch();
  SessionWatch(const SessionWatch&) = delete;
  SessionWatch& operator=(const SessionWatch&) = delete;

  // Rows base_length .. base_length + rows.rows() - 1 of the session, with the token of each. The
  // width is captures x hidden size; rows of another are not looked at.
  void OnRows(int64_t base_length, absl::Span<const int32_t> tokens, const HiddenRows& rows,
              absl::Time now);
  // When the engine has them: log-probabilities of committed tokens, and how many of those tokens
  // were the drafter's first choice.
  void OnScores(absl::Span<const float> log_probs, int64_t hits);
  void OnJudgement(int32_t proposed, int32_t accepted, std::optional<int32_t> worker_accepted,
                   absl::Time now);

 private:
  friend class WiringGuard;
  SessionWatch(WiringGuard& guard, SourceWatch& source, int64_t id, absl::Time now, bool fused);

  // Whether rows are to be sampled. Sessions that are idle lose their place to others.
  bool LookedAt();
  void StopLooking();
  void Sample(int64_t base_length, absl::Span<const int32_t> tokens, const HiddenRows& rows);
  void Vote();
  void Collect(int64_t base_length, absl::Span<const int32_t> tokens, const HiddenRows& rows);
  void AskForReplay(int64_t least_rows);

  WiringGuard& guard_;
  SourceWatch& source_;
  const int64_t id_;
  const bool fused_;                        // the rows are not looked at, only counted
  std::unique_ptr<RowSketch> sketch_;       // while it is looked at
  int32_t votes_ = 0;                       // since then
  int64_t last_call_ = 0;                   // of the source, by its count
  std::optional<ReplayRequest> collected_;  // while it collects rows for a replay
  int64_t next_row_ = 0;                    // one past the newest that was seen
  std::vector<int32_t> last_tokens_;        // of the rows before next_row_, at most two
  absl::Time now_;                          // of the last call
};

// Engine thread only, but for what says otherwise.
class WiringGuard {
 public:
  explicit WiringGuard(GuardOptions options);
  ~WiringGuard();

  // `target` is the manifest's target_id. Past a few hundred sources, further ones are watched
  // together, as client "(others)". Fused rows are a source of their own, of which nothing is ever
  // known: no capture can be told behind fc.
  std::unique_ptr<SessionWatch> Watch(const std::string& client, const std::string& target,
                                      absl::Time now, bool fused = false);

  // A window of rows to replay, if one is wanted.
  std::optional<ReplayRequest> TakeReplay();
  // The answer; of an unknown id it is dropped.
  void OnReplay(const ReplayScores& scores, absl::Time now);

  // Any thread. Call it now and then: forgets the sources whose time has come.
  void Forget(absl::Time now);

  // Any thread. One for each source, by client and target; counts are those of its last vote.
  std::vector<WiringReport> Reports() const;
  // Any thread. The worst of all sources: wrong, suspect, unknown, ok; unknown without sources.
  WiringState WorstState() const;

 private:
  friend class SessionWatch;
  using SourceKey = std::pair<std::string, std::string>;  // client, target
  // What other threads may see of a source. As long as it is here, the source is known.
  struct Published {
    WiringReport report;
    int32_t sessions = 0;   // open ones
    absl::Time idle_since;  // while there are none
  };

  void Voted(const SourceWatch& source, WiringState before);
  void Publish(const SourceWatch& source, WiringState before);
  void EndSession(const SourceWatch& source, absl::Time last_call);
  // Removes what only this thread has of sources that were forgotten.
  void DropForgotten();
  void TellSummary() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const GuardOptions options_;
  std::map<SourceKey, std::unique_ptr<SourceWatch>> sources_;
  std::deque<ReplayRequest> replays_;
  std::map<int64_t, SourceWatch*> asked_;  // by id of the request
  int64_t next_id_ = 0;

  mutable Mutex mutex_;
  std::map<SourceKey, Published> published_ ABSL_GUARDED_BY(mutex_);
  WiringState told_worst_ ABSL_GUARDED_BY(mutex_) = WiringState::kUnknown;
};

}  // namespace aerie
