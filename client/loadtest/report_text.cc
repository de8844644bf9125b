// ToTable, ToLiveLine and ToCsv: the report for people, terminals and spreadsheets.
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/loadtest/report.h"

namespace aerie::loadtest {
namespace {

double Milliseconds(absl::Duration duration) { return absl::ToDoubleMilliseconds(duration); }

std::string LatencyRow(absl::string_view name, const Histogram& h) {
  if (h.count() == 0) return "";
  return absl::StrFormat("  %-20s %9d %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f\n", name,
                         h.count(), Milliseconds(h.Mean()), Milliseconds(h.StandardDeviation()),
                         Milliseconds(h.Quantile(0.5)), Milliseconds(h.Quantile(0.9)),
                         Milliseconds(h.Quantile(0.95)), Milliseconds(h.Quantile(0.99)),
                         Milliseconds(h.Quantile(0.999)), Milliseconds(h.max()));
}

std::string Latencies(const MeasuredStats& m) {
  std::string text =
      absl::StrFormat("latency, ms            %9s %9s %9s %9s %9s %9s %9s %9s %9s\n", "count",
                      "mean", "stddev", "p50", "p90", "p95", "p99", "p99.9", "max");
  absl::StrAppend(&text, LatencyRow("round, intended", m.round_intended),
                  LatencyRow("round, from send", m.round));
  for (const auto& [code, histogram] : m.round_by_code) {
    if (code != "OK") absl::StrAppend(&text, LatencyRow(absl::StrCat("  ", code), histogram));
  }
  absl::StrAppend(&text, LatencyRow("prompt", m.prompt), LatencyRow("open", m.open),
                  LatencyRow("close", m.close), LatencyRow("server queue", m.queue),
                  LatencyRow("server extend", m.extend), LatencyRow("server step", m.step),
                  LatencyRow("server total", m.total));
  return text;
}

std::string Rates(const std::vector<double>& rates) {
  return absl::StrJoin(
      rates, " ", [](std::string* out, double rate) { absl::StrAppendFormat(out, "%.3f", rate); });
}

std::string Acceptance(const Report& report) {
  const AcceptanceTally& tally = report.result.measured.acceptance;
  const WholeStats& whole = report.result.whole;
  std::string text = absl::StrFormat(
      "accept length    %.3f (bonus included), rate %.3f over %d drafts\n"
      "  by position    %s\n",
      tally.MeanAcceptLength(), tally.AcceptanceRate(), tally.drafts(),
      Rates(tally.RateByPosition()));
  const std::vector<double> expected = ExpectedByPosition(report.options);
  if (!expected.empty()) absl::StrAppend(&text, "  the truth      ", Rates(expected), "\n");
  absl::StrAppendFormat(
      &text, "variety          %.3f of the output's three-token runs are distinct\n",
      whole.trigrams == 0
          ? 0.0
          : static_cast<double>(whole.distinct_trigrams) / static_cast<double>(whole.trigrams));
  return text;
}

std::string Pieces(const Report& report) {
  const LoadProfile& load =
      report.options.rate.has_value() ? *report.options.rate : report.options.sessions;
  if (load.pieces().size() < 2) return "";
  std::string text = absl::StrFormat("%-22s %9s %9s %9s %9s %9s\n", "pieces of the load", "rounds",
                                     "failed", "p50 ms", "p99 ms", "accept");
  for (size_t i = 0; i < load.pieces().size(); ++i) {
    const ProfilePiece& piece = load.pieces()[i];
    const auto& all = report.result.measured.pieces;
    const PieceStats stats = i < all.size() ? all[i] : PieceStats();
    absl::StrAppendFormat(
        &text, "  %-20s %9d %9d %9.3f %9.3f %9.3f\n",
        absl::StrCat(piece.from, piece.from == piece.to ? "" : "-",
                     piece.from == piece.to ? "" : absl::StrCat(piece.to), " for ",
                     absl::FormatDuration(piece.length)),
        stats.round.count(), stats.failed_rounds, Milliseconds(stats.round_intended.Quantile(0.5)),
        Milliseconds(stats.round_intended.Quantile(0.99)), stats.acceptance.MeanAcceptLength());
  }
  return text;
}

std::string Faults(const WholeStats& whole) {
  std::string text;
  for (const auto& [kind, tally] : whole.faults) {
    absl::StrAppendFormat(&text, "fault %-11s %d, %d answered as expected\n", kind, tally.injected,
                          tally.as_expected);
    if (!tally.first_surprise.empty()) {
      absl::StrAppend(&text, "  the first other: ", tally.first_surprise, "\n");
    }
  }
  return text;
}

std::string Counting(const Report& report) {
  const WholeStats& whole = report.result.whole;
  std::string text;
  for (const auto& [code, count] : whole.errors) {
    absl::StrAppend(&text, "errors           ", code, ": ", count, "\n");
  }
  if (!whole.first_error.empty()) absl::StrAppend(&text, "  the first: ", whole.first_error, "\n");
  absl::StrAppend(&text, Faults(whole));
  if (whole.difference_count == 0) {
    absl::StrAppend(&text, "sessions         the server counted the same in all ",
                    whole.sessions_compared, " sessions compared\n");
  } else {
    absl::StrAppend(&text, "sessions         ", whole.difference_count, " differences\n");
    for (const std::string& words : whole.differences) absl::StrAppend(&text, "  ", words, "\n");
  }
  if (!report.reconciliation_error.empty()) {
    absl::StrAppend(&text, "metrics page     ", report.reconciliation_error, "\n");
  } else if (report.reconciliation.done) {
    const Reconciliation& r = report.reconciliation;
    absl::StrAppend(&text, "metrics page     ", r.checks.size() - r.differences(), " of ",
                    r.checks.size(), " counters grew by what the run expects\n");
    for (const CounterCheck& check : r.checks) {
      if (check.fits()) continue;
      absl::StrAppendFormat(&text, "  %s grew by %.0f; expected %.0f", check.counter, check.found,
                            check.least);
      if (check.most > check.least) absl::StrAppendFormat(&text, " to %.0f", check.most);
      absl::StrAppend(&text, "; is another client at work there?\n");
    }
  }
  return text;
}

std::string Judgement(const Report& report) {
  const Verdicts verdicts = Judge(report);
  std::string text;
  for (const SloResult& slo : verdicts.slo) {
    absl::StrAppendFormat(&text, "slo              %s: %s (%.6g)\n", slo.text,
                          slo.met ? "met" : "MISSED", slo.value);
  }
  if (report.options.error_budget > 0) {
    absl::StrAppendFormat(&text, "error budget     %.4f %% of rounds failed: %s\n",
                          100 * verdicts.error_share, verdicts.within_budget ? "within" : "OVER");
  }
  if (report.options.goodput.has_value()) {
    absl::StrAppendFormat(&text, "goodput          %.1f rounds a second within %s\n",
                          verdicts.goodput, absl::FormatDuration(*report.options.goodput));
  }
  for (const std::string& limit : verdicts.tester_limits) {
    absl::StrAppend(&text, "CAREFUL          ", limit, "\n");
  }
  return text;
}

}  // namespace

std::string ToTable(const Report& report) {
  const RunResult& result = report.result;
  const MeasuredStats& m = result.measured;
  std::string text = absl::StrFormat(
      "sessions         %d finished, %d failed, %d at the context limit\n"
      "measured         %.2f s from %.2f s on, of %.2f s\n"
      "rounds           %d, %.1f a second",
      result.whole.sessions_finished, result.whole.sessions_failed,
      result.whole.sessions_at_context_limit, absl::ToDoubleSeconds(result.seconds),
      absl::ToDoubleSeconds(result.window_begin), absl::ToDoubleSeconds(result.ran), m.rounds,
      PerSecond(m.rounds, result));
  if (report.options.rate.has_value()) {
    absl::StrAppendFormat(
        &text, " of %.1f asked; %d found no session free",
        result.seconds > absl::ZeroDuration()
            ? static_cast<double>(result.asked_rounds) / absl::ToDoubleSeconds(result.seconds)
            : 0.0,
        m.late_rounds);
  }
  absl::StrAppendFormat(&text,
                        "; %d failed\n"
                        "tokens           %d, %.1f a second (committed: accepted and bonus)\n"
                        "sent             %d rows, %.1f MB\n",
                        m.failed_rounds, m.committed_tokens, PerSecond(m.committed_tokens, result),
                        m.sent_rows, static_cast<double>(m.sent_bytes) / 1e6);
  const int64_t rounds = result.whole.rounds + result.whole.failed_rounds;
  absl::StrAppendFormat(
      &text,
      "the tester       %.1f us of CPU a round, %.0f %% of its processors; the machine was busy "
      "for "
      "%.0f %%\n",
      rounds == 0 ? 0.0
                  : absl::ToDoubleMicroseconds(result.tester_cpu) / static_cast<double>(rounds),
      100.0 * result.tester_cpu_share, 100.0 * result.machine_busy_share);
  return absl::StrCat(text, Acceptance(report), Latencies(m), Pieces(report), Counting(report),
                      Judgement(report));
}

std::string ToLiveLine(const Interval& i) {
  std::string asked;
  if (i.asked > 0) asked = absl::StrFormat(" of %.1f asked", i.PerSecond(i.asked));
  return absl::StrFormat(
      "%5.0f s  %8.1f rounds/s%s  %8.1f tokens/s  %d in flight  p50 %.2f ms  p99 %.2f ms  accept "
      "length %.3f  errors %d",
      absl::ToDoubleSeconds(i.begin + i.length), i.PerSecond(static_cast<double>(i.rounds)), asked,
      i.PerSecond(static_cast<double>(i.tokens)), i.in_flight, Milliseconds(i.p50),
      Milliseconds(i.p99), i.accept_length, i.errors);
}

std::string ToCsv(const Report& report) {
  std::string text =
      "begin_seconds,length_seconds,steady,asked_rounds,rounds,errors,in_flight,committed_tokens,"
      "sent_bytes,mean_accept_length,intended_p50_seconds,intended_p90_seconds,"
      "intended_p99_seconds,intended_max_seconds,send_p99_seconds\n";
  const auto seconds = [](absl::Duration d) { return absl::ToDoubleSeconds(d); };
  for (const Interval& i : report.result.intervals) {
    absl::StrAppendFormat(&text, "%.6f,%.6f,%d,%.3f,%d,%d,%d,%d,%d,%.6f,%.9f,%.9f,%.9f,%.9f,%.9f\n",
                          seconds(i.begin), seconds(i.length), i.steady ? 1 : 0, i.asked, i.rounds,
                          i.errors, i.in_flight, i.tokens, i.bytes, i.accept_length, seconds(i.p50),
                          seconds(i.p90), seconds(i.p99), seconds(i.max), seconds(i.send_p99));
  }
  return text;
}

}  // namespace aerie::loadtest
