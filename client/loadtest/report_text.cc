// ToTable and ToLiveLine: the report for people.
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/loadtest/report.h"

namespace aerie::loadtest {
namespace {

double Milliseconds(absl::Duration duration) { return absl::ToDoubleMilliseconds(duration); }

double PerSecond(int64_t count, absl::Duration duration) {
  return duration > absl::ZeroDuration()
             ? static_cast<double>(count) / absl::ToDoubleSeconds(duration)
             : 0.0;
}

std::string LatencyRow(const char* name, const Histogram& h) {
  if (h.count() == 0) return "";
  return absl::StrFormat("  %-14s %9d %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f\n", name, h.count(),
                         Milliseconds(h.Mean()), Milliseconds(h.Quantile(0.5)),
                         Milliseconds(h.Quantile(0.9)), Milliseconds(h.Quantile(0.99)),
                         Milliseconds(h.Quantile(0.999)), Milliseconds(h.max()));
}

std::string Rates(const std::vector<double>& rates) {
  std::string text;
  for (const double rate : rates) absl::StrAppendFormat(&text, " %.3f", rate);
  return text;
}

std::string Outcome(const WholeStats& whole) {
  std::string text;
  for (const auto& [code, count] : whole.errors) {
    absl::StrAppend(&text, "errors           ", code, ": ", count, "\n");
  }
  if (!whole.first_error.empty()) absl::StrAppend(&text, "  the first: ", whole.first_error, "\n");
  if (whole.difference_count == 0) {
    return absl::StrCat(text, "reconciliation   the server counted the same in all ",
                        whole.sessions_compared, " sessions compared\n");
  }
  absl::StrAppend(&text, "reconciliation   ", whole.difference_count, " differences\n");
  for (const std::string& words : whole.differences) absl::StrAppend(&text, "  ", words, "\n");
  return text;
}

}  // namespace

std::string ToTable(const Report& report) {
  const RunResult& result = report.result;
  const MeasuredStats& m = result.measured;
  std::string text = absl::StrFormat(
      "sessions         %d finished, %d failed, %d at the context limit\n"
      "measured         %.2f s after a warm-up of %s; the tester used %.0f %% of all processors\n"
      "rounds           %d, %.1f a second\n"
      "tokens           %d, %.1f a second (committed: accepted and bonus)\n"
      "sent             %d rows, %.1f MB\n",
      m.sessions_finished, m.sessions_failed, m.sessions_at_context_limit,
      absl::ToDoubleSeconds(result.seconds), absl::FormatDuration(report.options.warmup),
      100.0 * result.tester_cpu_share, m.rounds, PerSecond(m.rounds, result.seconds),
      m.committed_tokens, PerSecond(m.committed_tokens, result.seconds), m.sent_rows,
      static_cast<double>(m.sent_bytes) / 1e6);
  absl::StrAppendFormat(
      &text,
      "accept length    %.3f (bonus included), rate %.3f over %d drafts\n"
      "  by position   %s\n"
      "variety          %.3f of the output's three-token runs are distinct\n",
      m.acceptance.MeanAcceptLength(), m.acceptance.AcceptanceRate(), m.acceptance.drafts(),
      Rates(m.acceptance.RateByPosition()),
      m.trigrams == 0 ? 0.0
                      : static_cast<double>(m.distinct_trigrams) / static_cast<double>(m.trigrams));
  absl::StrAppendFormat(&text, "latency, ms      %9s %9s %9s %9s %9s %9s %9s\n", "count", "mean",
                        "p50", "p90", "p99", "p99.9", "max");
  absl::StrAppend(&text, LatencyRow("round", m.round), LatencyRow("prompt", m.prompt),
                  LatencyRow("open", m.open), LatencyRow("close", m.close),
                  LatencyRow("server queue", m.queue), LatencyRow("server extend", m.extend),
                  LatencyRow("server step", m.step), LatencyRow("server total", m.total));
  return absl::StrCat(text, Outcome(result.whole));
}

std::string ToLiveLine(const LiveSample& sample) {
  return absl::StrFormat(
      "%4.0f s  %8.1f rounds/s  %8.1f tokens/s  p50 %7.2f ms  p99 %7.2f ms  accept length %.3f  "
      "errors %d",
      absl::ToDoubleSeconds(sample.since_start), PerSecond(sample.rounds.count(), sample.interval),
      PerSecond(sample.tokens, sample.interval), Milliseconds(sample.rounds.Quantile(0.5)),
      Milliseconds(sample.rounds.Quantile(0.99)), sample.acceptance.MeanAcceptLength(),
      sample.errors);
}

int ExitCode(const RunResult& result) {
  return result.whole.error_count() > 0 || result.whole.difference_count > 0 ? 1 : 0;
}

}  // namespace aerie::loadtest
