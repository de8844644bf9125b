#include "client/loadtest/svg_chart.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace aerie::loadtest {
namespace {

constexpr double kWidth = 720, kHeight = 300;
constexpr double kLeft = 64, kRight = 16, kTop = 44, kBottom = 46;
constexpr double kLetter = 7;  // width of one, at most
constexpr double kRight0 = kWidth - kRight, kBottom0 = kHeight - kBottom;

// From values to places on one axis.
class Axis {
 public:
  Axis(double low, double high, bool log, double begin, double end)
      : log_(log), low_(Of(low)), high_(Of(high)), begin_(begin), end_(end) {
    if (!(high_ > low_)) high_ = low_ + 1;
  }
  double At(double value) const {
    return begin_ + (Of(value) - low_) / (high_ - low_) * (end_ - begin_);
  }
  std::vector<double> Ticks() const {
    std::vector<double> ticks;
    if (log_) {
      for (double power = std::floor(low_); power <= std::ceil(high_); ++power) {
        // A narrow range needs more than its powers of ten.
        for (const double times :
             high_ - low_ < 2.5 ? std::vector<double>{1, 2, 5} : std::vector<double>{1}) {
          const double place = power + std::log10(times);
          if (place >= low_ - 1e-9 && place <= high_ + 1e-9) ticks.push_back(std::pow(10, place));
        }
      }
      return ticks;
    }
    const double raw = (high_ - low_) / 5;
    const double power = std::pow(10, std::floor(std::log10(raw)));
    const double step = power * (raw / power < 1.5 ? 1 : raw / power < 3.5 ? 2 : 5);
    for (double tick = std::ceil(low_ / step) * step; tick <= high_ + 1e-9 * step; tick += step) {
      ticks.push_back(tick);
    }
    return ticks;
  }

 private:
  double Of(double value) const { return log_ ? std::log10(value) : value; }
  const bool log_;
  double low_, high_;
  const double begin_, end_;
};

bool Drawable(const LineChart& chart, const std::pair<double, double>& point) {
  return std::isfinite(point.first) && std::isfinite(point.second) &&
         (!chart.log_x || point.first > 0) && (!chart.log_y || point.second > 0);
}

std::string Text(double x, double y, const char* anchor, const std::string& text,
                 const char* style = "") {
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">%s</text>\n",
                         x, y, anchor, style, HtmlEscaped(text));
}

std::string Line(double x1, double y1, double x2, double y2, const char* style) {
  return absl::StrFormat("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n",
                         x1, y1, x2, y2, style);
}

std::string Frame(const std::string& title, const std::string& y_name) {
  return absl::StrCat(
      absl::StrFormat("<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"%s\">\n", kWidth,
                      kHeight, HtmlEscaped(title)),
      Text(kLeft, 16, "start", title, "title"), Text(kLeft, 34, "start", y_name, "quiet"));
}

std::string Number(double value) { return absl::StrFormat("%.4g", value); }

std::string Grid(const Axis& y) {
  std::string svg;
  for (const double tick : y.Ticks()) {
    const double at = y.At(tick);
    if (at < kTop - 1 || at > kBottom0 + 1) continue;
    absl::StrAppend(&svg, Line(kLeft, at, kRight0, at, "grid"),
                    Text(kLeft - 6, at + 4, "end", Number(tick), "quiet"));
  }
  return absl::StrCat(svg, Line(kLeft, kBottom0, kRight0, kBottom0, "axis"));
}

std::string Curve(const LineChart& chart, const ChartLine& line, size_t number, const Axis& x,
                  const Axis& y) {
  std::string path, dots;
  for (const auto& point : line.points) {
    if (!Drawable(chart, point)) continue;
    const double at_x = x.At(point.first), at_y = y.At(point.second);
    absl::StrAppendFormat(&path, "%s%.1f,%.1f", path.empty() ? "" : " ", at_x, at_y);
    if (!line.dots) continue;
    absl::StrAppendFormat(&dots, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" class=\"d%d\"/>\n", at_x,
                          at_y, number);
  }
  return absl::StrFormat("<polyline points=\"%s\" class=\"s%d\"/>\n%s", path, number, dots);
}

std::string Legend(const std::vector<ChartLine>& lines) {
  std::string svg;
  double x = kRight0;
  for (size_t i = lines.size(); i-- > 0;) {
    x -= kLetter * static_cast<double>(lines[i].name.size());
    absl::StrAppend(&svg, Text(x, 34, "start", lines[i].name),
                    Line(x - 20, 30, x - 4, 30, absl::StrCat("s", i).c_str()));
    x -= 34;
  }
  return svg;
}

}  // namespace

std::string HtmlEscaped(const std::string& text) {
  return absl::StrReplaceAll(text,
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

std::string ToSvg(const LineChart& chart) {
  double x_low = HUGE_VAL, x_high = -HUGE_VAL, y_low = HUGE_VAL, y_high = -HUGE_VAL;
  for (const ChartLine& line : chart.lines) {
    for (const auto& point : line.points) {
      if (!Drawable(chart, point)) continue;
      x_low = std::min(x_low, point.first);
      x_high = std::max(x_high, point.first);
      y_low = std::min(y_low, point.second);
      y_high = std::max(y_high, point.second);
    }
  }
  std::string svg = Frame(chart.title, chart.y_name);
  if (!(x_low <= x_high)) {
    return absl::StrCat(svg, Text(kWidth / 2, kHeight / 2, "middle", "nothing was measured"),
                        "</svg>\n");
  }
  if (!chart.log_y) y_low = std::min(0.0, y_low);
  const Axis x(x_low, x_high, chart.log_x, kLeft, kRight0);
  const Axis y(y_low, y_high * (chart.log_y ? 1.2 : 1.05), chart.log_y, kBottom0, kTop);
  if (chart.shaded.has_value()) {
    const double begin = x.At(std::max(chart.shaded->first, x_low));
    const double end = x.At(std::min(chart.shaded->second, x_high));
    absl::StrAppendFormat(&svg,
                          "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                          "class=\"shaded\"/>\n",
                          begin, kTop, std::max(0.0, end - begin), kBottom0 - kTop);
  }
  absl::StrAppend(&svg, Grid(y));
  std::vector<std::pair<double, std::string>> ticks = chart.x_ticks;
  if (ticks.empty()) {
    for (const double tick : x.Ticks()) ticks.emplace_back(tick, Number(tick));
  }
  std::sort(ticks.begin(), ticks.end());
  double free_from = 0.0;
  for (const auto& [value, name] : ticks) {
    if (value < x_low * (1 - 1e-9) || value > x_high * (1 + 1e-9)) continue;
    const double at = x.At(value);
    absl::StrAppend(&svg, Line(at, kBottom0, at, kBottom0 + 4, "axis"));
    // A name that would cover the one before is left out, its tick is not.
    const double half = kLetter / 2 * static_cast<double>(name.size());
    if (at - half < free_from) continue;
    free_from = at + half + kLetter;
    absl::StrAppend(&svg, Text(at, kBottom0 + 18, "middle", name, "quiet"));
  }
  absl::StrAppend(&svg, Text((kLeft + kRight0) / 2, kHeight - 8, "middle", chart.x_name, "quiet"));
  if (chart.mark.has_value()) {
    const double at = x.At(chart.mark->first);
    absl::StrAppend(&svg, Line(at, kTop, at, kBottom0, "mark"),
                    Text(at, kTop - 2, "middle", chart.mark->second));
  }
  for (size_t i = 0; i < chart.lines.size(); ++i) {
    absl::StrAppend(&svg, Curve(chart, chart.lines[i], i, x, y));
  }
  return absl::StrCat(svg, Legend(chart.lines), "</svg>\n");
}

std::string ToSvg(const BarChart& chart) {
  std::string svg = Frame(chart.title, chart.y_name);
  const Axis y(0, 1, false, kBottom0, kTop);
  absl::StrAppend(&svg, Grid(y));
  const double slot =
      (kRight0 - kLeft) / std::max<double>(1, static_cast<double>(chart.bars.size()));
  const double width = std::min(60.0, 0.7 * slot);
  for (size_t i = 0; i < chart.bars.size(); ++i) {
    const BarChart::Bar& bar = chart.bars[i];
    const double middle = kLeft + (static_cast<double>(i) + 0.5) * slot;
    absl::StrAppendFormat(
        &svg, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" class=\"bar\"/>\n",
        middle - width / 2, y.At(bar.value), width, kBottom0 - y.At(bar.value));
    absl::StrAppend(&svg,
                    Text(middle, y.At(bar.value) - 5, "middle", absl::StrFormat("%.3f", bar.value)),
                    Text(middle, kBottom0 + 18, "middle", bar.name, "quiet"));
    if (bar.truth.has_value()) {
      const double at = y.At(*bar.truth);
      absl::StrAppend(&svg, Line(middle - width / 2 - 6, at, middle + width / 2 + 6, at, "mark"));
    }
  }
  return absl::StrCat(svg, "</svg>\n");
}

}  // namespace aerie::loadtest
