#include "client/loadtest/sweep_report.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/loadtest/report_json_parts.h"

namespace aerie::loadtest {
namespace {

Json JsonOfPoint(const SweepPoint& p, SweepOver over) {
  const auto seconds = [](absl::Duration d) { return absl::ToDoubleSeconds(d); };
  return {{"level", p.level},
          {"asked_rounds_per_second", p.asked},
          {"rounds_per_second", p.rounds},
          {"tokens_per_second", p.tokens},
          {"rows_per_second", p.rows},
          {"good_rounds_per_second", p.goodput},
          {"mean", seconds(p.mean)},
          {"p50", seconds(p.p50)},
          {"p99", seconds(p.p99)},
          {"prompt_mean", seconds(p.prompt_mean)},
          {"mean_accept_length", p.accept_length},
          {"error_share", p.error_share},
          {"keeps_up", p.KeepsUp()},
          {"within_slo", p.within_slo},
          {"tester_limited", p.tester_limited},
          {"worth", Worth(p, over)}};
}

std::string Closing(const SweepReport& report) {
  const SweepResult& result = report.result;
  const char* const name = SweepName(report.sweep.over);
  std::string text;
  if (result.knee.has_value()) {
    const SweepPoint& knee = result.points[*result.knee];
    absl::StrAppendFormat(&text, "knee             %s %.6g: %.1f rounds/s, p99 %.3f ms\n", name,
                          knee.level, knee.rounds, absl::ToDoubleMilliseconds(knee.p99));
  } else {
    absl::StrAppend(&text, "knee             none: no point keeps up; start lower with --from\n");
  }
  if (!report.options.slo.empty()) {
    if (result.best_within_slo.has_value()) {
      absl::StrAppendFormat(&text, "within the SLO   up to %s %.6g\n", name,
                            result.points[*result.best_within_slo].level);
    } else {
      absl::StrAppend(&text, "within the SLO   no point\n");
    }
  }
  return absl::StrCat(text, "  the knee is ", SweepRule(report.sweep.over), "\n");
}

}  // namespace

absl::StatusOr<LoadOptions> OptionsAt(double level, SweepOver over, LoadOptions options) {
  if (over != SweepOver::kRate && level != std::floor(level)) {
    return absl::InvalidArgumentError(absl::StrCat("a sweep over ", SweepName(over),
                                                   " was given the level ", level,
                                                   "; expected whole numbers; correct --values"));
  }
  switch (over) {
    case SweepOver::kRate:
      options.rate = LoadProfile::Constant(level);
      break;
    case SweepOver::kSessions:
      options.sessions = LoadProfile::Constant(level);
      break;
    case SweepOver::kK:
      options.k = static_cast<int32_t>(level);
      break;
    case SweepOver::kRows:
      options.prompt_rows = static_cast<int64_t>(level);
      break;
  }
  return options;
}

SweepPoint PointOf(const Report& report) {
  const RunResult& result = report.result;
  const MeasuredStats& m = result.measured;
  const Verdicts verdicts = Judge(report);
  SweepPoint point;
  const double seconds = absl::ToDoubleSeconds(result.seconds);
  if (report.options.rate.has_value() && seconds > 0)
    point.asked = static_cast<double>(result.asked_rounds) / seconds;
  point.rounds = PerSecond(m.rounds, result);
  point.tokens = PerSecond(m.committed_tokens, result);
  point.rows = PerSecond(m.sent_rows, result);
  point.goodput = verdicts.goodput;
  point.mean = m.round_intended.Mean();
  point.p50 = m.round_intended.Quantile(0.5);
  point.p99 = m.round_intended.Quantile(0.99);
  point.prompt_mean = m.prompt.Mean();
  point.accept_length = m.acceptance.MeanAcceptLength();
  point.error_share = verdicts.error_share;
  point.within_budget = verdicts.within_budget;
  point.within_slo = true;
  for (const SloResult& slo : verdicts.slo) point.within_slo = point.within_slo && slo.met;
  point.tester_limited = !verdicts.tester_limits.empty();
  return point;
}

std::string ToJson(const SweepReport& report) {
  const SweepOver over = report.sweep.over;
  Json json = JsonHead("sweep", report.started, report.arguments, report.server);
  json["options"] = JsonOf(report.options, report.manifest);
  json["over"] = SweepName(over);
  json["rule"] = SweepRule(over);
  json["points"] = Json::array();
  for (const SweepPoint& point : report.result.points) {
    json["points"].push_back(JsonOfPoint(point, over));
  }
  const auto at = [&](std::optional<size_t> index) {
    return index.has_value() ? JsonOfPoint(report.result.points[*index], over) : Json();
  };
  json["knee"] = at(report.result.knee);
  json["best_within_slo"] = report.options.slo.empty() ? Json() : at(report.result.best_within_slo);
  return JsonText(json);
}

std::string RowNames(SweepOver over) {
  return absl::StrFormat("%10s %10s %10s %10s %10s %10s %10s %10s %12s\n", SweepName(over),
                         "rounds/s", "tokens/s", "rows/s", "mean ms", "p50 ms", "p99 ms", "accept",
                         "worth");
}

std::string ToRow(const SweepPoint& p, SweepOver over) {
  const auto ms = [](absl::Duration d) { return absl::ToDoubleMilliseconds(d); };
  std::string text = absl::StrFormat(
      "%10.6g %10.1f %10.1f %10.1f %10.3f %10.3f %10.3f %10.3f %12.6g", p.level, p.rounds, p.tokens,
      p.rows, ms(p.mean), ms(p.p50), ms(p.p99), p.accept_length, Worth(p, over));
  if (!p.KeepsUp()) absl::StrAppend(&text, "  does not keep up");
  if (!p.within_slo) absl::StrAppend(&text, "  SLO missed");
  if (p.tester_limited) absl::StrAppend(&text, "  CAREFUL: short of processors");
  return text + "\n";
}

std::string ToTable(const SweepReport& report) {
  std::string text = RowNames(report.sweep.over);
  for (const SweepPoint& point : report.result.points) {
    absl::StrAppend(&text, ToRow(point, report.sweep.over));
  }
  return absl::StrCat(text, Closing(report));
}

}  // namespace aerie::loadtest
