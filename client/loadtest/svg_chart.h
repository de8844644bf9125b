// Plots as SVG text that stands in a page: lines over a linear or logarithmic axis, and bars.
//
// Colours come from the page's style (classes s0, s1, ... and quiet), so that they follow its light
// and dark scheme.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace aerie::loadtest {

struct ChartLine {
  std::string name;
  std::vector<std::pair<double, double>> points;  // not finite ones are left out
  bool dots = false;
};

struct LineChart {
  std::string title, x_name, y_name;
  std::vector<ChartLine> lines;
  bool log_x = false, log_y = false;
  std::vector<std::pair<double, std::string>> x_ticks;  // empty: chosen
  std::optional<std::pair<double, double>> shaded;      // a range of x
  std::optional<std::pair<double, std::string>> mark;   // one x, with a word
};

std::string ToSvg(const LineChart& chart);

struct BarChart {
  std::string title, y_name;
  struct Bar {
    std::string name;
    double value = 0;             // 0..1
    std::optional<double> truth;  // a line across the bar
  };
  std::vector<Bar> bars;
};

std::string ToSvg(const BarChart& chart);

// `text` fit for a page.
std::string HtmlEscaped(const std::string& text);

}  // namespace aerie::loadtest
