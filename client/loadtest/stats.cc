#include "client/loadtest/stats.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace aerie::loadtest {
namespace {

// More than a reader looks at.
constexpr size_t kMaxDifferences = 10;

}  // namespace

void PieceStats::Merge(const PieceStats& other) {
  round.Merge(other.round);
  round_intended.Merge(other.round_intended);
  acceptance.Merge(other.acceptance);
  failed_rounds += other.failed_rounds;
  committed_tokens += other.committed_tokens;
}

PieceStats& MeasuredStats::PieceOf(size_t piece) {
  if (pieces.size() <= piece) pieces.resize(piece + 1);
  return pieces[piece];
}

void MeasuredStats::Merge(const MeasuredStats& other) {
  prompt.Merge(other.prompt);
  round.Merge(other.round);
  open.Merge(other.open);
  close.Merge(other.close);
  round_intended.Merge(other.round_intended);
  for (const auto& [code, histogram] : other.round_by_code) round_by_code[code].Merge(histogram);
  queue.Merge(other.queue);
  extend.Merge(other.extend);
  step.Merge(other.step);
  total.Merge(other.total);
  wake_lag.Merge(other.wake_lag);
  acceptance.Merge(other.acceptance);
  rounds += other.rounds;
  failed_rounds += other.failed_rounds;
  late_rounds += other.late_rounds;
  good_rounds += other.good_rounds;
  good_tokens += other.good_tokens;
  committed_tokens += other.committed_tokens;
  sent_rows += other.sent_rows;
  sent_bytes += other.sent_bytes;
  short_drafts += other.short_drafts;
  resyncs += other.resyncs;
  repeats += other.repeats;
  for (size_t i = 0; i < other.pieces.size(); ++i) PieceOf(i).Merge(other.pieces[i]);
}

void SureCounts::Merge(const SureCounts& other) {
  acceptance.Merge(other.acceptance);
  sessions += other.sessions;
  proposals += other.proposals;
  committed_tokens += other.committed_tokens;
  rows += other.rows;
  bytes += other.bytes;
}

void UnsureCounts::Merge(const UnsureCounts& other) {
  sessions += other.sessions;
  calls += other.calls;
  committed_tokens += other.committed_tokens;
  rows += other.rows;
  bytes += other.bytes;
}

void FaultTally::Merge(const FaultTally& other) {
  injected += other.injected;
  as_expected += other.as_expected;
  for (const auto& [code, count] : other.by_code) by_code[code] += count;
  if (first_surprise.empty()) first_surprise = other.first_surprise;
}

void WholeStats::AddError(const absl::Status& status) {
  ++errors[absl::StatusCodeToString(status.code())];
  if (first_error.empty()) first_error = status.ToString();
}

void WholeStats::AddDifference(std::string words) {
  ++difference_count;
  if (differences.size() < kMaxDifferences) differences.push_back(std::move(words));
}

int64_t WholeStats::error_count() const {
  int64_t count = 0;
  for (const auto& [code, errors_of_code] : errors) count += errors_of_code;
  return count;
}

int64_t WholeStats::surprise_count() const {
  int64_t count = 0;
  for (const auto& [kind, tally] : faults) count += tally.injected - tally.as_expected;
  return count;
}

void WholeStats::Merge(const WholeStats& other) {
  sure.Merge(other.sure);
  unsure.Merge(other.unsure);
  rounds += other.rounds;
  failed_rounds += other.failed_rounds;
  sessions_finished += other.sessions_finished;
  sessions_failed += other.sessions_failed;
  sessions_at_context_limit += other.sessions_at_context_limit;
  sessions_compared += other.sessions_compared;
  sessions_not_compared += other.sessions_not_compared;
  difference_count += other.difference_count - static_cast<int64_t>(other.differences.size());
  for (const std::string& words : other.differences) AddDifference(words);
  for (const auto& [code, count] : other.errors) errors[code] += count;
  if (first_error.empty()) first_error = other.first_error;
  for (const auto& [kind, tally] : other.faults) faults[kind].Merge(tally);
  trigrams += other.trigrams;
  distinct_trigrams += other.distinct_trigrams;
}

void RecentStats::Merge(const RecentStats& other) {
  round_intended.Merge(other.round_intended);
  round.Merge(other.round);
  acceptance.Merge(other.acceptance);
  tokens += other.tokens;
  bytes += other.bytes;
  errors += other.errors;
}

}  // namespace aerie::loadtest
