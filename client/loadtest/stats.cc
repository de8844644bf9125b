#include "client/loadtest/stats.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace aerie::loadtest {
namespace {

// More than a reader looks at.
constexpr size_t kMaxDifferences = 10;

}  // namespace

void MeasuredStats::Merge(const MeasuredStats& other) {
  prompt.Merge(other.prompt);
  round.Merge(other.round);
  open.Merge(other.open);
  close.Merge(other.close);
  queue.Merge(other.queue);
  extend.Merge(other.extend);
  step.Merge(other.step);
  total.Merge(other.total);
  acceptance.Merge(other.acceptance);
  rounds += other.rounds;
  committed_tokens += other.committed_tokens;
  sent_rows += other.sent_rows;
  sent_bytes += other.sent_bytes;
  short_drafts += other.short_drafts;
  sessions_finished += other.sessions_finished;
  sessions_failed += other.sessions_failed;
  sessions_at_context_limit += other.sessions_at_context_limit;
  resyncs += other.resyncs;
  repeats += other.repeats;
  trigrams += other.trigrams;
  distinct_trigrams += other.distinct_trigrams;
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

void WholeStats::Merge(const WholeStats& other) {
  acceptance.Merge(other.acceptance);
  committed_tokens += other.committed_tokens;
  sessions_compared += other.sessions_compared;
  difference_count += other.difference_count - static_cast<int64_t>(other.differences.size());
  for (const std::string& words : other.differences) AddDifference(words);
  for (const auto& [code, count] : other.errors) errors[code] += count;
  if (first_error.empty()) first_error = other.first_error;
}

}  // namespace aerie::loadtest
