#include "client/loadtest/session_run.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/draft_client.h"
#include "client/loadtest/session_account.h"

namespace aerie::loadtest {
namespace {

// When one call was meant to start, could start, started and ended.
struct CallTimes {
  absl::Time intended, ready, start, end;
};

// Runs and counts one session.
class SessionRun {
 public:
  SessionRun(DraftClient& client, const Workload& workload, int64_t number, int32_t worker,
             const SessionPlan& plan, WorkerStats* stats)
      : client_(client),
        workload_(workload),
        number_(number),
        worker_(worker),
        plan_(plan),
        gate_(*plan.gate),
        stats_(*stats),
        sequence_(workload.NewSequence(number)) {}

  bool Run();

 private:
  bool Open();
  // Drafts behind `batch` and lets the target look at the proposal. `start` is empty for a prompt,
  // which is meant to start when it does.
  Verdict Round(const RowBatch& batch, std::optional<RoundStart> start);
  void CountRound(const DraftOutcome& outcome, const Verdict& verdict, const HiddenRows& rows,
                  const CallTimes& times, bool is_prompt);
  void Measure(const DraftOutcome& outcome, const Verdict& verdict, const HiddenRows& rows,
               const CallTimes& times, bool is_prompt) ABSL_EXCLUSIVE_LOCKS_REQUIRED(stats_.mutex);
  void Close(absl::Span<const int32_t> final_tokens);

  DraftClient& client_;
  const Workload& workload_;
  const int64_t number_;
  const int32_t worker_;
  const SessionPlan& plan_;
  RoundGate& gate_;
  WorkerStats& stats_;
  const std::unique_ptr<Sequence> sequence_;
  std::unique_ptr<DraftSession> session_;
  int64_t length_ = 0;  // rows of the sequence so far
  SessionAccount account_;
  std::optional<int32_t> last_accepted_;  // of the proposal that the next call judges
  int32_t last_proposed_ = 0;             // tokens that the target verified last
  bool failed_ = false, away_ = false, at_context_limit_ = false;
};

bool SessionRun::Run() {
  if (!Open()) return false;
  Verdict verdict = Round(sequence_->Prompt(), std::nullopt);
  for (int64_t round = 0; !verdict.finished && !at_context_limit_ && !away_; ++round) {
    if (plan_.rounds != 0 && round == plan_.rounds) break;
    if (plan_.beside_round) plan_.beside_round(number_, round, &stats_);
    const std::optional<RoundStart> start = gate_.WaitToStart(worker_);
    if (!start.has_value()) break;
    verdict = Round(verdict.committed, start);
  }
  // Also behind rows that the server's context had no room for: their tokens have been told.
  Close(verdict.committed.tokens);
  return !away_;
}

bool SessionRun::Open() {
  // A session that loses its rows at the server gets them from here.
  SessionSettings settings;
  settings.options = plan_.session;
  settings.options.seed += static_cast<uint64_t>(number_);
  settings.row_source = [this](int64_t first, int64_t last) -> absl::StatusOr<RowBatch> {
    return sequence_->Rows(first, last);
  };
  const absl::Time begin = gate_.clock().Now();
  auto opened = client_.Open(workload_.manifest(), std::move(settings));
  const absl::Time end = gate_.clock().Now();
  absl::MutexLock lock(&stats_.mutex);
  if (!opened.ok()) {
    stats_.whole.AddError(opened.status());
    ++stats_.recent.errors;
    ++stats_.whole.sessions_failed;
    ++stats_.whole.unsure.sessions;
    return false;
  }
  session_ = *std::move(opened);
  if (gate_.Counts(begin, end)) stats_.measured.open.Record(end - begin);
  return true;
}

Verdict SessionRun::Round(const RowBatch& batch, std::optional<RoundStart> start) {
  DraftInput input;
  input.base_length = length_;
  input.tokens = batch.tokens;
  input.rows = batch.rows;
  input.k = plan_.k;
  input.accepted = last_accepted_;
  if (plan_.session.adaptive_k && start.has_value()) {
    input.verify_cost = VerifyCost{plan_.verify_time, last_proposed_};
  }
  CallTimes times;
  stats_.in_flight.store(true, std::memory_order_relaxed);
  times.start = gate_.clock().Now();
  const DraftOutcome outcome = session_->Draft(input);
  times.end = gate_.clock().Now();
  stats_.in_flight.store(false, std::memory_order_relaxed);
  times.intended = start.has_value() ? start->intended : times.start;
  times.ready = start.has_value() ? start->ready : times.start;
  length_ += static_cast<int64_t>(batch.tokens.size());
  if (!outcome.status.ok()) {
    failed_ = true;
    // Asking again at once would only count errors.
    away_ = absl::IsUnavailable(outcome.status);
  }
  at_context_limit_ = outcome.no_draft_reason == v1::NO_DRAFT_REASON_CONTEXT_LIMIT;
  // The batch may be a view into the sequence, which is about to move on; its rows are not.
  const HiddenRows rows = batch.rows;
  const Verdict verdict = sequence_->Verify(outcome.tree);
  CountRound(outcome, verdict, rows, times, !start.has_value());
  return verdict;
}

void SessionRun::CountRound(const DraftOutcome& outcome, const Verdict& verdict,
                            const HiddenRows& rows, const CallTimes& times, bool is_prompt) {
  const int32_t proposed = outcome.tree.size();
  const auto committed = static_cast<int64_t>(verdict.committed.tokens.size());
  account_.Add(outcome, verdict, rows, length_);
  absl::MutexLock lock(&stats_.mutex);
  if (!outcome.status.ok()) {
    stats_.whole.AddError(outcome.status);
    ++stats_.recent.errors;
  }
  if (!failed_ && !account_.resent() && last_accepted_ != outcome.accepted) {
    const auto words = [](std::optional<int32_t> a) { return a ? absl::StrCat(*a) : "nothing"; };
    stats_.whole.AddDifference(absl::StrCat("a round's accepted tokens: the session counted ",
                                            words(last_accepted_), ", the server ",
                                            words(outcome.accepted)));
  }
  last_accepted_.reset();
  last_proposed_ = proposed;
  if (proposed > 0) {
    stats_.recent.acceptance.Add(proposed, outcome.tree.MaxDepth(), verdict.accepted);
    last_accepted_ = verdict.accepted;
  }
  stats_.recent.tokens += committed;
  stats_.recent.bytes += rows.rows() * workload_.manifest().wire_row_bytes();
  if (!is_prompt) {
    ++(outcome.status.ok() ? stats_.whole.rounds : stats_.whole.failed_rounds);
    stats_.recent.round_intended.Record(times.end - times.intended);
    stats_.recent.round.Record(times.end - times.start);
  }
  if (gate_.Counts(times.start, times.end)) Measure(outcome, verdict, rows, times, is_prompt);
}

void SessionRun::Measure(const DraftOutcome& outcome, const Verdict& verdict,
                         const HiddenRows& rows, const CallTimes& times, bool is_prompt) {
  MeasuredStats& m = stats_.measured;
  const absl::Duration from_intended = times.end - times.intended;
  const auto committed = static_cast<int64_t>(verdict.committed.tokens.size());
  PieceStats& piece = m.PieceOf(gate_.PieceAt(times.intended));
  if (!is_prompt) {
    m.round_by_code[absl::StatusCodeToString(outcome.status.code())].Record(from_intended);
  }
  if (!outcome.status.ok()) {
    if (!is_prompt) {
      ++m.failed_rounds;
      ++piece.failed_rounds;
    }
    return;
  }
  const int32_t proposed = outcome.tree.size();
  const int32_t depth = outcome.tree.MaxDepth();
  m.sent_rows += rows.rows();
  m.sent_bytes += rows.rows() * workload_.manifest().wire_row_bytes();
  m.committed_tokens += committed;
  m.resyncs += outcome.resyncs;
  piece.committed_tokens += committed;
  if (proposed > 0) {
    m.acceptance.Add(proposed, depth, verdict.accepted);
    piece.acceptance.Add(proposed, depth, verdict.accepted);
  }
  if (proposed < plan_.k) ++m.short_drafts;
  if (is_prompt) {
    m.prompt.Record(times.end - times.start);
    return;
  }
  ++m.rounds;
  m.repeats += outcome.attempts - 1;
  m.round.Record(times.end - times.start);
  m.round_intended.Record(from_intended);
  piece.round.Record(times.end - times.start);
  piece.round_intended.Record(from_intended);
  m.wake_lag.Record(times.start - std::max(times.intended, times.ready));
  if (times.ready > times.intended) ++m.late_rounds;
  if (plan_.goodput.has_value() && from_intended <= *plan_.goodput) {
    ++m.good_rounds;
    m.good_tokens += committed;
  }
  m.queue.Record(outcome.timing.queue);
  m.extend.Record(outcome.timing.extend);
  m.step.Record(outcome.timing.step);
  m.total.Record(outcome.timing.total);
}

void SessionRun::Close(absl::Span<const int32_t> final_tokens) {
  const absl::Time begin = gate_.clock().Now();
  const absl::StatusOr<AcceptanceRecord> record = session_->Close(final_tokens);
  const absl::Time end = gate_.clock().Now();
  absl::MutexLock lock(&stats_.mutex);
  if (!record.ok()) {
    // After a failed round the session may be gone, which has been counted already.
    if (!failed_) {
      stats_.whole.AddError(record.status());
      ++stats_.recent.errors;
    }
    failed_ = true;
  }
  WholeStats& whole = stats_.whole;
  ++(failed_ ? whole.sessions_failed : whole.sessions_finished);
  if (at_context_limit_) ++whole.sessions_at_context_limit;
  account_.Settle(session_->id(), record.ok() ? &*record : nullptr, failed_, &whole);
  if (gate_.Counts(begin, end) && !failed_) stats_.measured.close.Record(end - begin);
}

}  // namespace

bool RunSession(DraftClient& client, const Workload& workload, int64_t number, int32_t worker,
                const SessionPlan& plan, WorkerStats* stats) {
  return SessionRun(client, workload, number, worker, plan, stats).Run();
}

}  // namespace aerie::loadtest
