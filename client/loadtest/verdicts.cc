// Judge: SLO, error budget, and whether the tester itself was the limit.
#include <algorithm>

#include "absl/strings/str_format.h"
#include "client/loadtest/report.h"

namespace aerie::loadtest {
namespace {

// Up to here the tester's own delay is taken for none.
constexpr absl::Duration kLagAllowed = absl::Milliseconds(1);
constexpr double kLagShare = 0.1;  // of the median latency
constexpr double kOwnCpuLimit = 0.8, kMachineLimit = 0.95;

SloResult JudgeTerm(const SloTerm& term, const RunResult& result) {
  const Histogram& latency = result.measured.round_intended;
  SloResult out;
  out.text = term.text;
  absl::Duration found;
  switch (term.kind) {
    case SloTerm::Kind::kMinRate:
    case SloTerm::Kind::kMinAcceptLength:
      out.value = term.kind == SloTerm::Kind::kMinRate
                      ? PerSecond(result.measured.rounds, result)
                      : result.measured.acceptance.MeanAcceptLength();
      out.met = out.value >= term.least;
      return out;
    case SloTerm::Kind::kQuantile:
      found = latency.Quantile(term.quantile);
      break;
    case SloTerm::Kind::kMean:
      found = latency.Mean();
      break;
    case SloTerm::Kind::kMax:
      found = latency.max();
      break;
  }
  out.value = absl::ToDoubleSeconds(found);
  // Without a round nothing was kept to.
  out.met = latency.count() > 0 && found <= term.latency;
  return out;
}

std::vector<std::string> TesterLimits(const RunResult& result) {
  std::vector<std::string> limits;
  const MeasuredStats& m = result.measured;
  const absl::Duration lag = m.wake_lag.Quantile(0.99);
  const absl::Duration allowed = std::max(kLagAllowed, kLagShare * m.round.Quantile(0.5));
  if (lag > allowed) {
    limits.push_back(absl::StrFormat(
        "rounds were sent late: the 99th percentile of the delay between when a round could start "
        "and its send is %.3f ms, above %.3f ms; give the tester a processor of its own",
        absl::ToDoubleMilliseconds(lag), absl::ToDoubleMilliseconds(allowed)));
  }
  if (result.tester_cpu_share > kOwnCpuLimit) {
    limits.push_back(absl::StrFormat(
        "the tester used %.0f %% of the processors that it may use, above %.0f %%; use fewer "
        "sessions, or several testers",
        100 * result.tester_cpu_share, 100 * kOwnCpuLimit));
  } else if (result.machine_busy_share > kMachineLimit) {
    limits.push_back(absl::StrFormat(
        "this machine was busy for %.0f %% of the run, of which the tester used %.0f %%: whatever "
        "else runs here, and a server that does, ran short of processors; use another machine",
        100 * result.machine_busy_share, 100 * result.tester_cpu_share));
  }
  return limits;
}

}  // namespace

double PerSecond(int64_t count, const RunResult& result) {
  return result.seconds > absl::ZeroDuration()
             ? static_cast<double>(count) / absl::ToDoubleSeconds(result.seconds)
             : 0.0;
}

std::vector<double> ExpectedByPosition(const LoadOptions& options) {
  if (!options.recording.empty() || options.tree.has_value()) return {};
  return options.accept.ByPosition(options.k);
}

Verdicts Judge(const Report& report) {
  const RunResult& result = report.result;
  const WholeStats& whole = result.whole;
  Verdicts verdicts;
  const int64_t all = whole.rounds + whole.failed_rounds;
  verdicts.error_share =
      all == 0 ? 0.0 : static_cast<double>(whole.failed_rounds) / static_cast<double>(all);
  // With a budget a failed opening or close is forgiven like a round; without one nothing is.
  verdicts.within_budget = report.options.error_budget > 0
                               ? verdicts.error_share <= report.options.error_budget
                               : whole.error_count() == 0;
  bool slo_met = true;
  for (const SloTerm& term : report.options.slo) {
    verdicts.slo.push_back(JudgeTerm(term, result));
    slo_met = slo_met && verdicts.slo.back().met;
  }
  verdicts.goodput = PerSecond(result.measured.good_rounds, result);
  verdicts.tester_limits = TesterLimits(result);
  const bool counted_the_same = whole.difference_count == 0 &&
                                report.reconciliation.differences() == 0 &&
                                report.reconciliation_error.empty();
  if (!verdicts.within_budget || !counted_the_same || whole.surprise_count() > 0) {
    verdicts.exit_code = 1;
  } else if (!slo_met) {
    verdicts.exit_code = 3;
  }
  return verdicts;
}

}  // namespace aerie::loadtest
