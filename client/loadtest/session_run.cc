#include "client/loadtest/session_run.h"

#include <array>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace aerie::loadtest {
namespace {

// Counts one session: what it did, and what the server should have counted.
class SessionRun {
 public:
  SessionRun(DraftClient& client, const Workload& workload, int64_t number, const SessionPlan& plan,
             WorkerStats* stats)
      : client_(client),
        workload_(workload),
        number_(number),
        plan_(plan),
        stats_(*stats),
        sequence_(workload.NewSequence(number)) {}

  bool Run();

 private:
  // Drafts behind `batch` and lets the target look at the proposal.
  Verdict Round(const RowBatch& batch, bool is_prompt);
  void CountRound(const DraftOutcome& outcome, const Verdict& verdict, const RowBatch& batch,
                  absl::Time start, absl::Time end, bool is_prompt);
  void Close(absl::Span<const int32_t> final_tokens);
  void Compare(const AcceptanceRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(stats_.mutex);
  void CountEnd(absl::Time closing);

  DraftClient& client_;
  const Workload& workload_;
  const int64_t number_;
  const SessionPlan& plan_;
  WorkerStats& stats_;
  const std::unique_ptr<Sequence> sequence_;
  const absl::Time begin_ = absl::Now();
  std::unique_ptr<DraftSession> session_;
  int64_t length_ = 0;  // rows of the sequence so far
  AcceptanceTally acceptance_;
  int64_t committed_ = 0;
  std::vector<int32_t> output_;
  std::optional<int32_t> last_accepted_;  // of the proposal that the next call judges
  int32_t last_proposed_ = 0;             // tokens that the target verified last
  bool failed_ = false, away_ = false, at_context_limit_ = false;
};

bool SessionRun::Run() {
  // A session that loses its rows at the server gets them from here.
  SessionSettings settings;
  settings.options = plan_.session;
  settings.options.seed += static_cast<uint64_t>(number_);
  settings.row_source = [this](int64_t first, int64_t last) -> absl::StatusOr<RowBatch> {
    return sequence_->Rows(first, last);
  };
  auto opened = client_.Open(workload_.manifest(), std::move(settings));
  const absl::Time open_end = absl::Now();
  if (!opened.ok()) {
    absl::MutexLock lock(&stats_.mutex);
    stats_.whole.AddError(opened.status());
    ++stats_.measured.sessions_failed;
    return false;
  }
  session_ = *std::move(opened);
  if (plan_.window.Holds(begin_, open_end)) {
    absl::MutexLock lock(&stats_.mutex);
    stats_.measured.open.Record(open_end - begin_);
  }

  Verdict verdict = Round(sequence_->Prompt(), /*is_prompt=*/true);
  for (int64_t round = 0; !verdict.finished && !at_context_limit_ && !away_; ++round) {
    if (plan_.rounds != 0 && round == plan_.rounds) break;
    if (plan_.stopped() || absl::Now() >= plan_.window.end) break;
    verdict = Round(verdict.committed, /*is_prompt=*/false);
  }
  // Also behind rows that the server's context had no room for: their tokens have been told.
  Close(verdict.committed.tokens);
  return !away_;
}

Verdict SessionRun::Round(const RowBatch& batch, bool is_prompt) {
  DraftInput input;
  input.base_length = length_;
  input.tokens = batch.tokens;
  input.rows = batch.rows;
  input.k = plan_.k;
  input.accepted = last_accepted_;
  if (plan_.session.adaptive_k && !is_prompt) {
    input.verify_cost = VerifyCost{plan_.verify_time, last_proposed_};
  }
  const absl::Time start = absl::Now();
  const DraftOutcome outcome = session_->Draft(input);
  const absl::Time end = absl::Now();
  length_ += static_cast<int64_t>(batch.tokens.size());
  if (!outcome.status.ok()) {
    failed_ = true;
    // Asking again at once would only count errors.
    away_ = absl::IsUnavailable(outcome.status);
  }
  at_context_limit_ = outcome.no_draft_reason == v1::NO_DRAFT_REASON_CONTEXT_LIMIT;
  // The batch may be a view into the sequence, which is about to move on.
  const RowBatch sent = {{}, batch.rows};
  const Verdict verdict = sequence_->Verify(outcome.tree);
  CountRound(outcome, verdict, sent, start, end, is_prompt);
  return verdict;
}

void SessionRun::CountRound(const DraftOutcome& outcome, const Verdict& verdict,
                            const RowBatch& batch, absl::Time start, absl::Time end,
                            bool is_prompt) {
  const int32_t proposed = outcome.tree.size();
  const auto committed = static_cast<int64_t>(verdict.committed.tokens.size());
  absl::MutexLock lock(&stats_.mutex);
  if (!outcome.status.ok()) stats_.whole.AddError(outcome.status);
  if (!failed_ && last_accepted_ != outcome.accepted) {
    const auto words = [](std::optional<int32_t> a) { return a ? absl::StrCat(*a) : "nothing"; };
    stats_.whole.AddDifference(absl::StrCat("a round's accepted tokens: the session counted ",
                                            words(last_accepted_), ", the server ",
                                            words(outcome.accepted)));
  }
  last_accepted_.reset();
  last_proposed_ = proposed;
  const int32_t depth = outcome.tree.MaxDepth();
  if (proposed > 0) {
    acceptance_.Add(proposed, depth, verdict.accepted);
    stats_.recent_acceptance.Add(proposed, depth, verdict.accepted);
    last_accepted_ = verdict.accepted;
  }
  // As the server counts: what follows a proposal is output, what came before it is prompt.
  if (acceptance_.drafts() > 0) committed_ += committed;
  output_.insert(output_.end(), verdict.committed.tokens.begin(), verdict.committed.tokens.end());
  stats_.recent_tokens += committed;
  if (!is_prompt) stats_.recent_rounds.Record(end - start);
  if (!plan_.window.Holds(start, end) || !outcome.status.ok()) return;

  MeasuredStats& m = stats_.measured;
  (is_prompt ? m.prompt : m.round).Record(end - start);
  m.sent_rows += batch.rows.rows();
  m.sent_bytes += static_cast<int64_t>(batch.rows.bytes().size());
  m.committed_tokens += committed;
  m.resyncs += outcome.resyncs;
  if (proposed > 0) m.acceptance.Add(proposed, depth, verdict.accepted);
  if (proposed < plan_.k) ++m.short_drafts;
  if (is_prompt) return;
  ++m.rounds;
  m.repeats += outcome.attempts - 1;
  m.queue.Record(outcome.timing.queue);
  m.extend.Record(outcome.timing.extend);
  m.step.Record(outcome.timing.step);
  m.total.Record(outcome.timing.total);
}

void SessionRun::Close(absl::Span<const int32_t> final_tokens) {
  const absl::Time closing = absl::Now();
  const absl::StatusOr<AcceptanceRecord> record = session_->Close(final_tokens);
  {
    absl::MutexLock lock(&stats_.mutex);
    if (!record.ok()) {
      // After a failed round the session may be gone, which has been counted already.
      if (!failed_) stats_.whole.AddError(record.status());
      failed_ = true;
    } else if (!failed_) {
      Compare(*record);
    }
  }
  CountEnd(closing);
}

void SessionRun::Compare(const AcceptanceRecord& record) {
  WholeStats& whole = stats_.whole;
  ++whole.sessions_compared;
  whole.acceptance.Merge(acceptance_);
  whole.committed_tokens += committed_;
  const auto compare = [&](const char* what, int64_t ours, int64_t theirs) {
    if (ours == theirs) return;
    whole.AddDifference(absl::StrCat("session ", session_->id(), ", ", what,
                                     ": the session counted ", ours, ", the server ", theirs));
  };
  compare("drafts", acceptance_.drafts(), record.spec_steps);
  compare("draft tokens", acceptance_.draft_tokens(), record.draft_tokens);
  compare("accepted draft tokens", acceptance_.accepted_tokens(), record.accepted_draft_tokens);
  compare("committed tokens", committed_, record.completion_tokens);
  compare("drafts without an outcome", 0, record.unreported_drafts);
}

void SessionRun::CountEnd(absl::Time closing) {
  std::set<std::array<int32_t, 3>> distinct;
  for (size_t i = 0; i + 2 < output_.size(); ++i) {
    distinct.insert({output_[i], output_[i + 1], output_[i + 2]});
  }
  const absl::Time end = absl::Now();
  absl::MutexLock lock(&stats_.mutex);
  MeasuredStats& m = stats_.measured;
  ++(failed_ ? m.sessions_failed : m.sessions_finished);
  if (at_context_limit_) ++m.sessions_at_context_limit;
  m.trigrams += output_.size() < 3 ? 0 : static_cast<int64_t>(output_.size()) - 2;
  m.distinct_trigrams += static_cast<int64_t>(distinct.size());
  if (plan_.window.Holds(closing, end) && !failed_) m.close.Record(end - closing);
}

}  // namespace

bool RunSession(DraftClient& client, const Workload& workload, int64_t number,
                const SessionPlan& plan, WorkerStats* stats) {
  return SessionRun(client, workload, number, plan, stats).Run();
}

}  // namespace aerie::loadtest
