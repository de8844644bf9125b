#include "server/verify/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/verify/html_charts.h"
#include "server/verify/html_style.h"
#include "server/verify/html_text.h"

namespace aerie {
namespace {

constexpr int kMostExcludedShown = 12;
constexpr size_t kMostShown = 60;

std::string P(double p) { return p < 1e-4 ? "&lt; 0.0001" : fmt::format("{:.4f}", p); }

absl::string_view ToneOf(Standing standing) {
  switch (standing) {
    case Standing::kBetter:
      return "t-good";
    case Standing::kOpen:
      return "t-open";
    case Standing::kExcluded:
      return "t-far";
    case Standing::kReference:
    case Standing::kEquivalent:
      break;
  }
  return "t-same";
}

absl::string_view ToneOf(LabelVerdict verdict) {
  switch (verdict) {
    case LabelVerdict::kSupported:
      return "t-good";
    case LabelVerdict::kContradicted:
      return "t-bad";
    case LabelVerdict::kUntested:
      break;
  }
  return "t-far";
}

std::string Tag(absl::string_view tone, absl::string_view word) {
  return absl::StrCat("<span class=\"tag ", tone, "\">", Escaped(word), "</span>");
}

void Head(const VerifyResult& result, std::string& html) {
  const absl::string_view verdict = VerdictName(result.verdict);
  absl::StrAppend(&html, "<h1>aerie-verify: which hidden states this head wants</h1>\n",
                  "<div class=\"verdict ", verdict, "\"><strong>", verdict, "</strong>",
                  Escaped(result.reason), "</div>\n<dl>\n");
  const auto entry = [&html](absl::string_view name, const std::string& value) {
    if (value.empty()) return;
    absl::StrAppend(&html, "<dt>", name, "</dt><dd>", Escaped(value), "</dd>\n");
  };
  entry("head", result.drafter_version.empty()
                    ? result.drafter
                    : absl::StrCat(result.drafter, ", weights ", result.drafter_version));
  entry("target", result.target);
  entry("recording",
        absl::StrCat(result.recording, result.dtype.empty() ? "" : ", ", result.dtype));
  entry("made by", result.source);
  entry("scored", fmt::format("{} rows of {} sequences", result.rows, result.sequences));
  for (const DeclaredReading& reading : result.declared) {
    entry("declared", absl::StrCat(reading.wiring, ", read as ", reading.convention,
                                   reading.why_not.empty() ? "" : ": ", reading.why_not));
  }
  entry("margin",
        fmt::format("{:.3f} nats a row, p {}", result.margin,
                    result.p_value < 1e-4 ? "< 0.0001" : fmt::format("{:.4f}", result.p_value)));
  if (result.rows_needed.has_value()) {
    entry("to decide", fmt::format("about {} rows", *result.rows_needed));
  }
  html += "</dl>\n";
}

void List(absl::string_view heading, const std::vector<std::string>& lines, std::string& html) {
  if (lines.empty()) return;
  absl::StrAppend(&html, "<h2>", heading, "</h2>\n<ul>\n");
  for (const std::string& line : lines) absl::StrAppend(&html, "<li>", Escaped(line), "</li>\n");
  html += "</ul>\n";
}

// The best of those that are not excluded, the declared, and the best of the rest.
std::vector<int32_t> Shown(const VerifyResult& result) {
  std::vector<int32_t> shown;
  int excluded = 0;
  for (size_t i = 0; i < result.candidates.size(); ++i) {
    const CandidateResult& candidate = result.candidates[i];
    const bool hidden = shown.size() >= kMostShown || (candidate.standing == Standing::kExcluded &&
                                                       ++excluded > kMostExcludedShown);
    if (hidden && !candidate.declared) continue;
    shown.push_back(static_cast<int32_t>(i));
  }
  return shown;
}

void CandidateTable(const VerifyResult& result, const std::vector<int32_t>& shown,
                    std::string& html) {
  html +=
      "<details><summary>The same as numbers</summary><div class=\"wide\"><table>\n<tr><th>"
      "standing</th><th>wiring</th><th>claimed to be</th><th class=\"number\">accuracy</th>"
      "<th class=\"number\">log-likelihood</th><th class=\"number\">p</th>"
      "<th class=\"number\">accept length</th><th class=\"number\">rows</th></tr>\n";
  for (const int32_t index : shown) {
    const CandidateResult& candidate = result.candidates[static_cast<size_t>(index)];
    std::string claims;
    for (const std::string& claim : candidate.wiring.claims) {
      absl::StrAppend(&claims, claims.empty() ? "" : ", ", claim);
    }
    html += fmt::format(
        "<tr><td>{}</td><td>{}{}</td><td>{}</td><td class=\"number\">{:.1f} %</td>"
        "<td class=\"number\">{:.3f}</td><td class=\"number\">{}</td><td class=\"number\">{}</td>"
        "<td class=\"number\">{}</td></tr>\n",
        Tag(ToneOf(candidate.standing), StandingName(candidate.standing)),
        Escaped(candidate.wiring.Name()), candidate.declared ? " (declared)" : "", Escaped(claims),
        100 * candidate.accuracy, candidate.mean_log_likelihood,
        candidate.standing == Standing::kReference ? "" : P(candidate.test.p_adjusted),
        candidate.depths.has_value() ? fmt::format("{:.3f}", candidate.depths->accept_length) : "",
        candidate.rows);
  }
  html += "</table></div></details>\n";
}

void Candidates(const VerifyResult& result, std::string& html) {
  if (result.candidates.empty()) return;
  const std::vector<int32_t> shown = Shown(result);
  html += "<h2>Candidate wirings</h2>\n";
  absl::StrAppend(&html, "<div class=\"wide\">", CandidateChart(result, shown), "</div>\n");
  html +=
      "<p class=\"quiet\">Dots: how much better (right) or worse (left) than the reference, with a "
      "95 % interval over sequences; arrows lie beyond the edge. Bold: the declared wiring. (+1), "
      "(-1): states shifted by a position. Colours:";
  for (const Standing standing : {Standing::kReference, Standing::kBetter, Standing::kEquivalent,
                                  Standing::kOpen, Standing::kExcluded}) {
    absl::StrAppend(&html, standing == Standing::kReference ? " " : ", ",
                    Tag(ToneOf(standing), StandingName(standing)));
  }
  html += ".";
  if (shown.size() < result.candidates.size()) {
    html += fmt::format(" {} more are not shown.", result.candidates.size() - shown.size());
  }
  html += "</p>\n";
  CandidateTable(result, shown, html);
}

void WhatIfTable(const VerifyResult& result, std::string& html) {
  if (result.what_if.empty()) return;
  html +=
      "<h2>What if the head's files were wrong in</h2>\n<div class=\"wide\"><table>\n<tr><th>"
      "setting</th><th>in force</th><th>tried</th><th class=\"number\">accept length</th>"
      "<th class=\"number\">nats a row</th><th class=\"number\">p</th><th></th></tr>\n";
  for (const WhatIf& row : result.what_if) {
    absl::StrAppend(&html, "<tr><td>", Escaped(row.setting), "</td><td>", Escaped(row.declared),
                    "</td><td>", Escaped(row.value), "</td>");
    if (row.scored) {
      html += fmt::format(
          "<td class=\"number\">{:.3f}</td><td class=\"number\">{:+.3f}</td>"
          "<td class=\"number\">{}</td><td>{}</td></tr>\n",
          row.depths.accept_length, -row.test.difference, P(row.test.p_adjusted),
          row.better ? Tag("t-bad", "better") : std::string());
    } else {
      absl::StrAppend(&html, "<td colspan=\"4\" class=\"quiet\">not tried: ", Escaped(row.why_not),
                      "</td></tr>\n");
    }
  }
  html += "</table></div>\n";
}

void LabelTable(const VerifyResult& result, std::string& html) {
  if (result.labels.empty()) return;
  html +=
      "<h2>What the recording calls its tensors</h2>\n<div class=\"wide\"><table>\n<tr><th>tensor"
      "</th><th>label</th><th>claim</th><th>verdict</th><th>because</th></tr>\n";
  for (const LabelResult& label : result.labels) {
    absl::StrAppend(&html, "<tr><td>", Escaped(label.tensor), "</td><td>", Escaped(label.label),
                    "</td><td>", Escaped(label.claim), "</td><td>",
                    Tag(ToneOf(label.verdict), LabelVerdictName(label.verdict)));
    absl::StrAppend(&html, "</td><td>", Escaped(label.reason), "</td></tr>\n");
  }
  html += "</table></div>\n";
}

void Chart(absl::string_view heading, const std::string& svg, absl::string_view note,
           std::string& html) {
  if (svg.empty()) return;
  absl::StrAppend(&html, "<h2>", heading, "</h2>\n<div class=\"wide\">", svg,
                  "</div>\n<p class=\"quiet\">", note, "</p>\n");
}

}  // namespace

std::string VerifyResultAsHtml(const VerifyResult& result) {
  std::string html = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
      VerdictName(result.verdict), ": aerie-verify ", Escaped(result.drafter), "</title>\n<style>",
      kHtmlStyle, "</style>\n</head>\n<body>\n<main>\n");
  Head(result, html);
  List("What to do", result.advice, html);
  Candidates(result, html);
  Chart("By draft depth", DepthChart(result),
        "Behind rows of the recording. Accept length is 1 + the sum of the dashed line.", html);
  WhatIfTable(result, html);
  LabelTable(result, html);
  Chart("Size of the rows of each tensor", NormChart(result),
        "Root mean square of a row, logarithmic: bar 25 .. 75 %, thick line 5 .. 95 %, thin line "
        "all rows, mark the median. Sizes alone do not tell places apart: neighbours may differ "
        "by a thousandth, and a final norm is as small as an early layer.",
        html);
  List("Not tested", result.limits, html);
  html += fmt::format(
      "<p class=\"quiet\">{} of {:.0f} candidates were scored on {} rows, {} of these on {}: {}. "
      "Every exclusion together is wrong with a chance of {:g} at most; candidates within {:g} "
      "nats a row of each other count as equivalent.</p>\n",
      result.pruned.scored_coarse, result.pruned.possible, result.pruned.coarse_rows,
      result.pruned.scored_fully, result.pruned.rows, Escaped(result.pruned.rule), result.alpha,
      result.equivalence_margin);
  return html + "</main>\n</body>\n</html>\n";
}

}  // namespace aerie
