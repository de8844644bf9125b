// ToHtml: a sweep as one page with plots, which needs nothing else and no network.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/loadtest/html_page.h"
#include "client/loadtest/svg_chart.h"
#include "client/loadtest/sweep_report.h"

namespace aerie::loadtest {
namespace {

double Milliseconds(absl::Duration duration) { return absl::ToDoubleMilliseconds(duration); }

}  // namespace

std::string ToHtml(const SweepReport& report) {
  const SweepOver over = report.sweep.over;
  LineChart chart;
  chart.log_x = true;
  chart.x_name = SweepName(over);
  if (report.result.knee.has_value()) {
    chart.mark = {report.result.points[*report.result.knee].level, "knee"};
  }
  for (const SweepPoint& p : report.result.points) {
    chart.x_ticks.emplace_back(p.level, absl::StrFormat("%.4g", p.level));
  }
  const auto line = [&](const char* name, auto value) {
    ChartLine out{name, {}, true};
    for (const SweepPoint& p : report.result.points) out.points.emplace_back(p.level, value(p));
    return out;
  };
  chart.title = "Throughput";
  chart.y_name = "a second";
  chart.lines = {line("rounds", [](const SweepPoint& p) { return p.rounds; }),
                 line("tokens", [](const SweepPoint& p) { return p.tokens; })};
  if (over == SweepOver::kRate) {
    chart.lines.push_back(line("asked", [](const SweepPoint& p) { return p.asked; }));
  }
  std::string plots = ToSvg(chart);
  chart.title = "Latency";
  chart.y_name = "ms, from the intended start";
  chart.log_y = true;
  chart.lines = {line("mean", [](const SweepPoint& p) { return Milliseconds(p.mean); }),
                 line("p50", [](const SweepPoint& p) { return Milliseconds(p.p50); }),
                 line("p99", [](const SweepPoint& p) { return Milliseconds(p.p99); })};
  absl::StrAppend(&plots, ToSvg(chart));
  chart.title = "What the points are worth";
  chart.y_name = "see the rule";
  chart.log_y = false;
  chart.lines = {line("worth", [over](const SweepPoint& p) { return Worth(p, over); })};
  absl::StrAppend(&plots, ToSvg(chart));
  return absl::StrCat(HtmlHead(absl::StrCat("Sweep over ", SweepName(over)), report.started,
                               report.server, report.arguments),
                      "<p>The knee is ", SweepRule(over), ".</p>\n<div class=\"plots\">\n", plots,
                      "</div>\n<h2>Points</h2><div class=\"wide\"><pre>",
                      HtmlEscaped(ToTable(report)), "</pre></div>\n</body></html>\n");
}

}  // namespace aerie::loadtest
