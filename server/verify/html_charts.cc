#include "server/verify/html_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "server/verify/html_text.h"

namespace aerie {
namespace {

constexpr double kWidth = 960;
constexpr double kLine = 24;       // height of a line of a chart
constexpr double kLabelEnd = 330;  // where names end and plots begin
constexpr size_t kLongestName = 46;

std::string Cut(const std::string& name, size_t most) {
  if (name.size() <= most) return name;
  return name.substr(0, most - 3) + "...";
}

// "aux_0 | aux_1 (+1)": whatever is cut, the shift stays.
std::string ShortName(const WiringView& wiring) {
  const std::string shift = wiring.shift == 0 ? "" : fmt::format(" ({:+d})", wiring.shift);
  return Cut(absl::StrJoin(wiring.tensors, " | "), kLongestName - shift.size()) + shift;
}

std::string Open(double height, absl::string_view title) {
  return fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\"><title>{}</title>\n", kWidth,
      height, Escaped(title), Escaped(title));
}

std::string Text(double x, double y, absl::string_view kind, absl::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", x, y,
                     std::string(kind), Escaped(text));
}

std::string Rect(double x, double y, double width, double height, absl::string_view kind) {
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"{}\"/>\n", x, y,
      std::max(0.0, width), height, std::string(kind));
}

std::string Line(double x1, double y1, double x2, double y2, absl::string_view kind) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2,
      y2, std::string(kind));
}

std::string Dot(double x, double y, double radius, absl::string_view kind) {
  return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" class=\"{}\"/>\n", x, y,
                     radius, std::string(kind));
}

// Differences beyond these are drawn at the edge, with their number beside them.
constexpr double kLeastDifference = -0.6, kMostDifference = 0.2;

// The mark of one candidate: its difference to the reference and how sure that is.
std::string DifferenceMark(const CandidateResult& candidate, double left, double right, double y) {
  if (candidate.standing == Standing::kReference) {
    return Text(right + 8, y + 4, "note", "reference");
  }
  const double difference = -candidate.test.difference;  // of the candidate to the reference
  if (!std::isfinite(difference)) return Text(right + 8, y + 4, "note", "not compared");
  const auto place = [&](double value) {
    const double share = (std::clamp(value, kLeastDifference, kMostDifference) - kLeastDifference) /
                         (kMostDifference - kLeastDifference);
    return left + share * (right - left);
  };
  const std::string kind = absl::StrCat("s-", StandingName(candidate.standing));
  std::string svg;
  if (std::isfinite(candidate.test.standard_error)) {
    const double half = 1.96 * candidate.test.standard_error;
    svg += Line(place(difference - half), y, place(difference + half), y, "whisker " + kind);
  }
  if (difference < kLeastDifference || difference > kMostDifference) {
    // Beyond the edge: an arrow that points there.
    const double tip = difference < 0 ? left - 6 : right + 6,
                 base = difference < 0 ? left + 3 : right - 3;
    svg += fmt::format("<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}L{:.1f} {:.1f}Z\" class=\"{}\"/>\n",
                       tip, y, base, y - 5, base, y + 5, kind);
  } else {
    svg += Dot(place(difference), y, 4, kind);
  }
  return svg + Text(right + 8, y + 4, "note", fmt::format("{:+.3f}", difference));
}

struct Curve {
  std::string name;
  std::vector<double> values;  // by depth, 0..1
  std::string kind;
};

std::vector<Curve> DepthCurves(const VerifyResult& result) {
  std::vector<Curve> curves;
  const auto add = [&](int32_t index, const std::string& name, const std::string& kind) {
    if (index < 0) return;
    const auto& depths = result.candidates[static_cast<size_t>(index)].depths;
    if (!depths.has_value()) return;
    curves.push_back({absl::StrCat(name, ": next token right, fed the true ones"), depths->accuracy,
                      absl::StrCat(kind, " solid")});
    curves.push_back({absl::StrCat(name, ": all tokens right so far, fed its own"),
                      depths->acceptance, absl::StrCat(kind, " dashed")});
  };
  add(result.reference, "reference", "c-reference");
  if (result.best != result.reference) add(result.best, "best", "c-best");
  return curves;
}

}  // namespace

std::string CandidateChart(const VerifyResult& result, const std::vector<int32_t>& shown) {
  constexpr double kBarEnd = 590, kLeft = 650, kRight = 880;
  double most = 0.01;
  for (const int32_t index : shown) {
    most = std::max(most, result.candidates[static_cast<size_t>(index)].accuracy);
  }
  const double height = 58 + kLine * static_cast<double>(shown.size());
  std::string svg = Open(height, "Accuracy and log-likelihood of candidate wirings");
  svg += Text(kLabelEnd, 14, "head", "next token right, %");
  svg += Text(kLeft, 14, "head", "log-likelihood less the reference's, nats a row");
  const double zero =
      kLeft + (0 - kLeastDifference) / (kMostDifference - kLeastDifference) * (kRight - kLeft);
  for (const double tick : {-0.4, -0.2, 0.2}) {
    const double x = zero + tick / (kMostDifference - kLeastDifference) * (kRight - kLeft);
    svg += Line(x, 40, x, height - 6, "grid");
    svg += Text(x, 32, "tick middle", fmt::format("{:+.1f}", tick));
  }
  svg += Text(zero, 32, "tick middle", "0");
  svg += Line(zero, 40, zero, height - 6, "axis");
  double y = 54;
  for (const int32_t index : shown) {
    const CandidateResult& candidate = result.candidates[static_cast<size_t>(index)];
    svg += fmt::format("<g><title>{}</title>\n", Escaped(candidate.wiring.Name()));
    svg += Text(kLabelEnd - 12, y + 4, candidate.declared ? "name declared" : "name",
                ShortName(candidate.wiring));
    svg += Rect(kLabelEnd, y - 7, candidate.accuracy / most * (kBarEnd - kLabelEnd - 50), 14,
                absl::StrCat("s-", StandingName(candidate.standing)));
    svg += Text(kLabelEnd + candidate.accuracy / most * (kBarEnd - kLabelEnd - 50) + 6, y + 4,
                "note", fmt::format("{:.1f}", 100 * candidate.accuracy));
    svg += DifferenceMark(candidate, kLeft, kRight, y);
    svg += "</g>\n";
    y += kLine;
  }
  return svg + "</svg>\n";
}

std::string DepthChart(const VerifyResult& result) {
  const std::vector<Curve> curves = DepthCurves(result);
  size_t depths = 0;
  double most = 0.1;
  for (const Curve& curve : curves) {
    depths = std::max(depths, curve.values.size());
    for (const double value : curve.values) most = std::max(most, value);
  }
  if (depths == 0) return "";
  most = std::ceil(most * 10) / 10;
  constexpr double kLeft = 60, kRight = 540, kTop = 16, kBottom = 236;
  std::string svg = Open(276, "Accuracy by draft depth");
  for (int tick = 0; tick <= 4; ++tick) {
    const double value = most * tick / 4, y = kBottom - (kBottom - kTop) * tick / 4;
    svg += Line(kLeft, y, kRight, y, "grid");
    svg += Text(kLeft - 8, y + 4, "tick end", fmt::format("{:.0f} %", 100 * value));
  }
  const auto place = [&](size_t depth) {
    return kLeft + 30 +
           (kRight - kLeft - 60) * static_cast<double>(depth) / std::max<double>(1, depths - 1);
  };
  for (size_t depth = 0; depth < depths; ++depth) {
    svg += Text(place(depth), kBottom + 20, "tick middle", fmt::format("{}", depth + 1));
  }
  svg += Text((kLeft + kRight) / 2, kBottom + 38, "head middle", "draft depth");
  double legend = 40;
  for (const Curve& curve : curves) {
    std::string points;
    for (size_t depth = 0; depth < curve.values.size(); ++depth) {
      const double y = kBottom - (kBottom - kTop) * curve.values[depth] / most;
      points += fmt::format("{:.1f},{:.1f} ", place(depth), y);
      svg += Dot(place(depth), y, 3.5, "dot " + curve.kind);
    }
    svg += fmt::format("<polyline points=\"{}\" class=\"curve {}\"/>\n", points, curve.kind);
    svg += Line(580, legend - 4, 616, legend - 4, "curve " + curve.kind);
    svg += Text(624, legend, "note", curve.name);
    legend += 26;
  }
  return svg + "</svg>\n";
}

std::string NormChart(const VerifyResult& result) {
  double least = INFINITY, most = 0;
  for (const TensorProfile& profile : result.profiles) {
    for (const double value : profile.rms_quantiles) {
      if (!(value > 0) || !std::isfinite(value)) continue;
      least = std::min(least, value);
      most = std::max(most, value);
    }
  }
  if (!(most > 0)) return "";
  const double low = std::floor(std::log10(least)),
               high = std::max(low + 1, std::ceil(std::log10(most)));
  constexpr double kRight = 920;
  const auto place = [&](double value) {
    const double share = (std::log10(std::max(value, std::pow(10, low))) - low) / (high - low);
    return kLabelEnd + share * (kRight - kLabelEnd);
  };
  const double height = 40 + kLine * static_cast<double>(result.profiles.size());
  std::string svg = Open(height, "Size of the rows of each tensor");
  for (double decade = low; decade <= high; ++decade) {
    const double x = place(std::pow(10, decade));
    svg += Line(x, 22, x, height - 8, "grid");
    svg += Text(x, 14, "tick middle", fmt::format("{:g}", std::pow(10, decade)));
  }
  double y = 36;
  for (const TensorProfile& profile : result.profiles) {
    // "boundary_2 (boundary 2)" would say everything twice.
    const bool told =
        profile.claim.empty() || absl::StrReplaceAll(profile.tensor, {{"_", " "}}) == profile.claim;
    const std::string name =
        told ? profile.tensor : absl::StrCat(profile.tensor, " (", profile.claim, ")");
    svg += Text(kLabelEnd - 12, y + 4, "name", Cut(name, kLongestName));
    const std::vector<double>& q = profile.rms_quantiles;  // 0, 5, 25, 50, 75, 95, 100 %
    if (q.size() == 7) {
      svg += Line(place(q[0]), y, place(q[6]), y, "range");
      svg += Line(place(q[1]), y, place(q[5]), y, "whisker s-reference");
      svg += Rect(place(q[2]), y - 6, std::max(2.0, place(q[4]) - place(q[2])), 12, "s-reference");
      svg += Line(place(q[3]), y - 8, place(q[3]), y + 8, "median");
    }
    y += kLine;
  }
  return svg + "</svg>\n";
}

}  // namespace aerie
