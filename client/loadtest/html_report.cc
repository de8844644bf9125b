// ToHtml: a run as one page with plots, which needs nothing else and no network.
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/loadtest/html_page.h"
#include "client/loadtest/report.h"
#include "client/loadtest/svg_chart.h"

namespace aerie::loadtest {
namespace {

double Milliseconds(absl::Duration duration) { return absl::ToDoubleMilliseconds(duration); }

std::string Tile(const std::string& name, const std::string& value, const std::string& below) {
  return absl::StrCat("<div class=\"tile\">", name, "<b>", value, "</b><span class=\"sub\">", below,
                      "</span></div>\n");
}

std::string Tiles(const Report& report) {
  const RunResult& result = report.result;
  const MeasuredStats& m = result.measured;
  const auto ms = [](absl::Duration d) { return absl::StrFormat("%.2f ms", Milliseconds(d)); };
  std::string asked = "closed loop";
  if (report.options.rate.has_value() && result.seconds > absl::ZeroDuration()) {
    asked = absl::StrFormat("of %.1f asked", static_cast<double>(result.asked_rounds) /
                                                 absl::ToDoubleSeconds(result.seconds));
  }
  return absl::StrCat(
      "<div class=\"tiles\">\n",
      Tile("rounds a second", absl::StrFormat("%.1f", PerSecond(m.rounds, result)), asked),
      Tile("committed tokens a second",
           absl::StrFormat("%.1f", PerSecond(m.committed_tokens, result)), "accepted and bonus"),
      Tile("p50", ms(m.round_intended.Quantile(0.5)), "from the intended start"),
      Tile("p99", ms(m.round_intended.Quantile(0.99)), "from the intended start"),
      Tile("accept length", absl::StrFormat("%.3f", m.acceptance.MeanAcceptLength()),
           "bonus included"),
      Tile("failed rounds", absl::StrCat(m.failed_rounds),
           absl::StrCat(result.whole.error_count(), " errors in the whole run")),
      "</div>\n");
}

std::vector<std::pair<double, double>> Percentiles(const Histogram& histogram) {
  std::vector<std::pair<double, double>> points;
  if (histogram.count() == 0) return points;
  // Even steps on a scale on which each nine is as wide as the one before.
  const double last = std::log10(static_cast<double>(histogram.count()));
  for (double nines = 0; nines <= last + 1e-9; nines += 0.02) {
    points.emplace_back(std::pow(10, nines),
                        Milliseconds(histogram.Quantile(1 - std::pow(10, -nines))));
  }
  points.emplace_back(std::pow(10, last), Milliseconds(histogram.max()));
  return points;
}

std::string LatencyPlot(const MeasuredStats& m) {
  LineChart chart;
  chart.title = "Latency by percentile";
  chart.y_name = "ms";
  chart.x_name = "share of rounds that took no longer";
  chart.log_x = true;
  chart.lines = {{"from intended start", Percentiles(m.round_intended)},
                 {"from send", Percentiles(m.round)}};
  chart.x_ticks = {{1, "0"},        {2, "50 %"},      {10, "90 %"},     {100, "99 %"},
                   {1e3, "99.9 %"}, {1e4, "99.99 %"}, {1e5, "99.999 %"}};
  return ToSvg(chart);
}

// One point an interval, at its middle.
template <typename Value>
std::vector<std::pair<double, double>> OverTime(const RunResult& result, Value value) {
  std::vector<std::pair<double, double>> points;
  for (const Interval& i : result.intervals) {
    points.emplace_back(absl::ToDoubleSeconds(i.begin + i.length / 2), value(i));
  }
  return points;
}

std::string TimePlots(const Report& report) {
  const RunResult& result = report.result;
  LineChart chart;
  chart.x_name = "seconds (shaded: the steady window, which the figures are of)";
  chart.shaded = {absl::ToDoubleSeconds(result.window_begin),
                  absl::ToDoubleSeconds(result.window_begin + result.seconds)};
  chart.title = "Rounds over time";
  chart.y_name = "a second";
  chart.lines = {{"done", OverTime(result, [](const Interval& i) {
                    return i.PerSecond(static_cast<double>(i.rounds));
                  })}};
  if (report.options.rate.has_value()) {
    chart.lines.push_back(
        {"asked", OverTime(result, [](const Interval& i) { return i.PerSecond(i.asked); })});
  }
  std::string svg = ToSvg(chart);
  chart.title = "Latency over time";
  chart.y_name = "ms, from the intended start";
  chart.log_y = true;
  chart.lines = {{"p50", OverTime(result, [](const Interval& i) { return Milliseconds(i.p50); })},
                 {"p99", OverTime(result, [](const Interval& i) { return Milliseconds(i.p99); })},
                 {"max", OverTime(result, [](const Interval& i) { return Milliseconds(i.max); })}};
  return absl::StrCat(svg, ToSvg(chart));
}

std::string AcceptancePlot(const Report& report) {
  BarChart chart;
  const std::vector<double> truth = ExpectedByPosition(report.options);
  chart.title = "Acceptance by position";
  chart.y_name = truth.empty() ? "kept at the position, of those that reached it"
                               : "kept at the position (dashed: the truth of --accept)";
  const std::vector<double> rates = report.result.measured.acceptance.RateByPosition();
  for (size_t i = 0; i < rates.size(); ++i) {
    BarChart::Bar bar = {absl::StrCat(i), rates[i], std::nullopt};
    if (i < truth.size()) bar.truth = truth[i];
    chart.bars.push_back(std::move(bar));
  }
  return ToSvg(chart);
}

std::string LatencyRow(const std::string& name, const Histogram& h) {
  if (h.count() == 0) return "";
  std::string row = absl::StrCat("<tr><td>", name, "</td><td>", h.count(), "</td>");
  for (const absl::Duration value :
       {h.Mean(), h.StandardDeviation(), h.Quantile(0.5), h.Quantile(0.9), h.Quantile(0.95),
        h.Quantile(0.99), h.Quantile(0.999), h.max()}) {
    absl::StrAppendFormat(&row, "<td>%.3f</td>", Milliseconds(value));
  }
  return row + "</tr>\n";
}

std::string LatencyTable(const MeasuredStats& m) {
  std::string rows;
  absl::StrAppend(&rows, LatencyRow("round, from intended start", m.round_intended),
                  LatencyRow("round, from send", m.round));
  for (const auto& [code, histogram] : m.round_by_code) {
    absl::StrAppend(&rows, LatencyRow(absl::StrCat("round, answered ", code), histogram));
  }
  absl::StrAppend(&rows, LatencyRow("prompt", m.prompt), LatencyRow("open", m.open),
                  LatencyRow("close", m.close), LatencyRow("server: queue", m.queue),
                  LatencyRow("server: extend", m.extend), LatencyRow("server: step", m.step),
                  LatencyRow("server: total", m.total),
                  LatencyRow("the tester's own delay", m.wake_lag));
  return absl::StrCat(
      "<h2>Latencies, ms</h2><div class=\"wide\"><table><tr><th></th><th>count</th><th>mean</th>"
      "<th>stddev</th><th>p50</th><th>p90</th><th>p95</th><th>p99</th><th>p99.9</th><th>max</th>"
      "</tr>\n",
      rows, "</table></div>\n");
}

std::string Judgement(const Report& report) {
  const Verdicts verdicts = Judge(report);
  const WholeStats& whole = report.result.whole;
  std::string html = "<h2>Verdicts</h2><ul>\n";
  const auto item = [&html](bool good, const std::string& text) {
    absl::StrAppend(&html, "<li", good ? "" : " class=\"bad\"", ">", HtmlEscaped(text), "</li>\n");
  };
  for (const SloResult& slo : verdicts.slo) {
    item(slo.met,
         absl::StrFormat("SLO %s: %s (%.6g)", slo.text, slo.met ? "met" : "missed", slo.value));
  }
  item(verdicts.within_budget,
       absl::StrFormat("%.4f %% of rounds failed", 100 * verdicts.error_share));
  item(whole.difference_count == 0,
       absl::StrCat("the server's record differed from the session's in ", whole.difference_count,
                    " places over ", whole.sessions_compared, " sessions"));
  if (report.reconciliation.done) {
    const Reconciliation& r = report.reconciliation;
    item(r.differences() == 0, absl::StrCat(r.differences(), " of ", r.checks.size(),
                                            " counters of the metrics page do not fit the run"));
  }
  if (!report.reconciliation_error.empty()) item(false, report.reconciliation_error);
  for (const auto& [kind, tally] : whole.faults) {
    item(tally.as_expected == tally.injected,
         absl::StrCat("fault ", kind, ": ", tally.as_expected, " of ", tally.injected,
                      " answered as they must be"));
  }
  for (const std::string& limit : verdicts.tester_limits) item(false, limit);
  return html + "</ul>\n";
}

}  // namespace

std::string ToHtml(const Report& report) {
  return absl::StrCat(HtmlHead("Load test", report.result.started, report.server, report.arguments),
                      Tiles(report), Judgement(report), "<div class=\"plots\">\n",
                      LatencyPlot(report.result.measured), AcceptancePlot(report),
                      TimePlots(report), "</div>\n", LatencyTable(report.result.measured),
                      "</body></html>\n");
}

}  // namespace aerie::loadtest
