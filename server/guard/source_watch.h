// All evidence about the rows of one source, and the state that it comes to.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/wiring_report.h"
#include "server/guard/drafting_evidence.h"
#include "server/guard/guard_profile.h"
#include "server/guard/guard_thresholds.h"
#include "server/guard/replay.h"
#include "server/guard/row_sketch.h"
#include "server/guard/vote_findings.h"
#include "server/guard/wiring_observer.h"

namespace aerie {

class SessionWatch;

// Engine thread only.
class SourceWatch {
 public:
  struct Setup {
    std::string client, target;
    const GuardProfile* profile = nullptr;  // null: none was measured
    int32_t captures = 0;                   // of the wiring
    GuardThresholds thresholds;
    bool replay = false;  // whether anybody answers replays
    bool fused = false;   // no vote will ever come
  };
  explicit SourceWatch(Setup setup);

  const std::string& client() const { return setup_.client; }
  const std::string& target() const { return setup_.target; }
  bool fused() const { return setup_.fused; }

  void CountCall(int64_t rows);
  int64_t calls() const { return report_.rounds; }

  // The sessions that are looked at: a few at a time, so that a pass of many sessions costs no more
  // than one of a few.
  std::vector<SessionWatch*>& looked_at() { return looked_at_; }
  // While a session collects rows for a replay, no other does.
  void set_collecting(bool collecting) { collecting_ = collecting; }

  // Each of those that follow says whether the report is to be published: a vote came, or the state
  // changed.
  bool AddVote(RowVote vote, absl::Time now);
  // Rows of a session that came to no vote; they make one together with those of others.
  bool AddRest(const RowSketch& rest, int64_t session, absl::Time now);
  bool AddJudgement(int32_t proposed, int32_t accepted, std::optional<int32_t> worker_accepted,
                    absl::Time now);
  bool AddReplay(const ReplayScores& scores, absl::Time now);
  void AddScores(absl::Span<const float> log_probs, int64_t hits);

  // True when a window of rows should be collected for a replay: something is odd, and the last
  // one is some rounds ago.
  bool WantsReplay() const;
  void NoteReplayAsked() { rounds_at_replay_ = report_.rounds; }

  WiringState state() const { return report_.state; }
  // Of the last vote.
  VoteOutcome last_outcome() const { return last_outcome_; }
  WiringReport Report() const;

 private:
  bool Settle(absl::Time now);
  // What all evidence comes to, with its words.
  FindingLevel Weigh(std::string& verdict) const;
  void Enter(WiringState state, absl::Time now);

  const Setup setup_;
  std::deque<RowVote> votes_;
  Findings findings_;
  VoteOutcome last_outcome_ = VoteOutcome::kFits;
  std::optional<DraftingEvidence> drafting_;
  ReplayEvidence replay_;
  WiringReport report_;  // state, since, verdict and counts
  std::vector<SessionWatch*> looked_at_;
  bool collecting_ = false;
  std::unique_ptr<RowSketch> rest_;
  int32_t alarms_ = 0, calms_ = 0;  // in a row
  int64_t judgements_ = 0;
  bool below_expectation_ = false;  // as of the last look
  std::optional<int64_t> rounds_at_replay_;
};

}  // namespace aerie
