#include "server/guard/source_watch.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "server/guard/verdict_text.h"

namespace aerie {
namespace {

constexpr int64_t kJudgementsPerLook = 64;
constexpr int64_t kRoundsPerReplay = 64;
// Rows like no recorded capture are suspicious once they are the rule.
constexpr int64_t kOddVotesNeeded = 6;
constexpr double kMostlyOdd = 0.75;

// The oldest vote of the session that has most of them, so that one long session does not push
// out what others said.
void DropOne(std::deque<RowVote>& votes) {
  std::map<int64_t, int32_t> of_session;
  for (const RowVote& vote : votes) ++of_session[vote.session];
  int32_t most = 0;
  for (const auto& [session, count] : of_session) most = std::max(most, count);
  const auto oldest = std::find_if(votes.begin(), votes.end(), [&](const RowVote& vote) {
    return of_session[vote.session] == most;
  });
  votes.erase(oldest);
}

DraftingExpectation ExpectationOf(const GuardProfile* profile) {
  return profile == nullptr ? DraftingExpectation()
                            : profile->expectation.value_or(DraftingExpectation());
}

}  // namespace

SourceWatch::SourceWatch(Setup setup) : setup_(std::move(setup)), replay_(setup_.captures) {
  report_.client = setup_.client;
  report_.target = setup_.target;
  report_.verdict =
      setup_.fused ? "unknown: fused rows; captures cannot be told behind fc, send them "
                     "unfused to have them looked at"
      : setup_.profile == nullptr ? "no profile of the target's rows; measure one with aerie-verify"
                                  : "too few rows so far";
  drafting_.emplace(ExpectationOf(setup_.profile));
}

void SourceWatch::CountCall(int64_t rows) {
  ++report_.rounds;
  report_.rows += rows;
}

bool SourceWatch::AddVote(RowVote vote, absl::Time now) {
  ++report_.votes;
  report_.sampled_rows += vote.rows;
  const bool odd = IsOdd(vote, setup_.thresholds);
  if (odd) ++report_.odd_votes;
  votes_.push_back(std::move(vote));
  if (static_cast<int32_t>(votes_.size()) > setup_.thresholds.votes_kept) DropOne(votes_);
  findings_ = WeighVotes(*setup_.profile, setup_.thresholds, votes_);
  last_outcome_ = odd                                      ? VoteOutcome::kOdd
                  : findings_.level == FindingLevel::kNone ? VoteOutcome::kFits
                                                           : VoteOutcome::kOff;
  Settle(now);
  return true;
}

bool SourceWatch::AddRest(const RowSketch& rest, int64_t session, absl::Time now) {
  if (rest_ == nullptr) rest_ = std::make_unique<RowSketch>(*setup_.profile);
  rest_->Merge(rest);
  if (rest_->rows() < setup_.thresholds.rows_per_vote) return false;
  RowVote vote = rest_->Take();
  vote.session = session;
  return AddVote(std::move(vote), now);
}

void SourceWatch::AddScores(absl::Span<const float> log_probs, int64_t hits) {
  drafting_->AddScores(log_probs, hits);
}

bool SourceWatch::AddJudgement(int32_t proposed, int32_t accepted,
                               std::optional<int32_t> worker_accepted, absl::Time now) {
  drafting_->AddJudgement(proposed, accepted);
  if (worker_accepted.has_value()) drafting_->AddWorkerCount(accepted, *worker_accepted);
  if (++judgements_ % kJudgementsPerLook != 0) return false;
  below_expectation_ = drafting_->Report().below_expectation;
  return Settle(now);
}

bool SourceWatch::AddReplay(const ReplayScores& scores, absl::Time now) {
  replay_.Add(scores);
  Settle(now);
  return true;
}

bool SourceWatch::WantsReplay() const {
  if (!setup_.replay || setup_.captures < 2 || collecting_) return false;
  if (rounds_at_replay_.has_value() && report_.rounds - *rounds_at_replay_ < kRoundsPerReplay) {
    return false;
  }
  return report_.state == WiringState::kSuspect || report_.state == WiringState::kWrong ||
         below_expectation_;
}

FindingLevel SourceWatch::Weigh(std::string& verdict) const {
  FindingLevel level = findings_.level;
  verdict = findings_.verdict;
  if (replay_.Contradicts()) {
    level = FindingLevel::kWrong;
    const ReplayReport report = replay_.Report();
    AppendSentence(
        absl::StrCat("replayed with the captures ", report.best, ", log-likelihood rises by ",
                     report.gain, " a row; expected none better than as sent: check their order"),
        verdict);
  }
  const auto odd = std::count_if(votes_.begin(), votes_.end(), [this](const RowVote& vote) {
    return IsOdd(vote, setup_.thresholds);
  });
  if (odd >= kOddVotesNeeded &&
      static_cast<double>(odd) > kMostlyOdd * static_cast<double>(votes_.size())) {
    level = std::max(level, FindingLevel::kSuspect);
    AppendSentence(
        "most rows are like no recorded capture; expected those of the recording's "
        "target: check that the worker runs it, or record more kinds of text",
        verdict);
  }
  if (WorkerContradicts(drafting_->Report())) {
    level = std::max(level, FindingLevel::kSuspect);
    AppendSentence(
        "the worker counts other drafts as accepted than its tokens say; expected equal "
        "counts: check which positions it verifies",
        verdict);
  }
  return level;
}

bool SourceWatch::Settle(absl::Time now) {
  const WiringState before = report_.state;
  std::string verdict;
  const FindingLevel level = Weigh(verdict);
  alarms_ = level == FindingLevel::kWrong ? alarms_ + 1 : 0;
  calms_ = level == FindingLevel::kNone ? calms_ + 1 : 0;
  if (alarms_ >= setup_.thresholds.alarm_after) {
    Enter(WiringState::kWrong, now);
  } else if (level != FindingLevel::kNone && before != WiringState::kWrong) {
    Enter(WiringState::kSuspect, now);
  } else if (level == FindingLevel::kNone && findings_.votes >= setup_.thresholds.suspect_votes &&
             (before == WiringState::kUnknown || calms_ >= setup_.thresholds.calm_after)) {
    Enter(WiringState::kOk, now);
  }
  if (!verdict.empty()) {
    report_.verdict = std::move(verdict);
  } else if (report_.state == WiringState::kOk) {
    report_.verdict = "rows look as declared";
  }
  return report_.state != before;
}

void SourceWatch::Enter(WiringState state, absl::Time now) {
  if (report_.state == state) return;
  report_.state = state;
  report_.since = now;
}

WiringReport SourceWatch::Report() const {
  WiringReport report = report_;
  std::set<int64_t> sessions;
  for (const RowVote& vote : votes_) sessions.insert(vote.session);
  report.sessions = static_cast<int64_t>(sessions.size());
  report.places = findings_.places;
  report.one_layer_earlier = findings_.one_layer_earlier;
  report.one_layer_later = findings_.one_layer_later;
  report.alignment = findings_.alignment;
  const DraftingReport drafting = drafting_->Report();
  if (drafting.judged > 0 || drafting.accuracy.has_value()) report.drafting = drafting;
  if (const ReplayReport replay = replay_.Report(); replay.answered > 0) report.replay = replay;
  return report;
}

}  // namespace aerie
