// The HTML report: what it shows, that nothing in it can run, and that it is well-formed.
#include "server/verify/html_report.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/verify/html_text.h"

namespace aerie {
namespace {

using testing::HasSubstr;
using testing::Not;

CandidateResult Candidate(const std::string& tensor, Standing standing, double accuracy) {
  CandidateResult candidate;
  candidate.wiring.tensors = {tensor, "aux_1"};
  candidate.wiring.claims = {"boundary 2", "boundary 15"};
  candidate.standing = standing;
  candidate.accuracy = accuracy;
  candidate.mean_log_likelihood = -2.5;
  candidate.rows = 1500;
  candidate.test.difference = 0.123;
  candidate.test.standard_error = 0.01;
  return candidate;
}

// A result that has something in every part of the report.
VerifyResult Whole() {
  VerifyResult result;
  result.verdict = Verdict::kContradicted;
  result.reason = "the reason";
  result.drafter = "demo/drafter";
  result.rows = 1500;
  result.candidates = {Candidate("first", Standing::kBetter, 0.41),
                       Candidate("second", Standing::kReference, 0.333),
                       Candidate("third", Standing::kExcluded, 0.05)};
  result.candidates[1].declared = true;
  result.candidates[2].wiring.shift = 1;
  result.candidates[2].test.difference = 4.5;
  result.best = 0;
  result.reference = 1;
  result.candidates[0].depths = DepthScores{500, {0.4, 0.3}, {-2, -3}, {0.4, 0.1}, 1.5};
  result.candidates[1].depths = DepthScores{500, {0.33, 0.2}, {-2, -3}, {0.33, 0.05}, 1.38};
  WhatIf tried{.setting = "norm_output", .declared = "off", .value = "on", .scored = true};
  tried.better = true;
  result.what_if = {tried,
                    {.setting = "d2t", .declared = "offsets", .value = "ids", .why_not = "no"}};
  result.labels = {{"aux_0", "embed", "embedding", LabelVerdict::kContradicted, "it is none"}};
  result.profiles = {{"aux_0", "boundary 2", 2, {0.1, 1, 2, 3, 4, 5, 100}}};
  result.advice = {"set the ids to [1, 14, 26]"};
  result.limits = {"boundary 3 was not recorded"};
  return result;
}

// Every tag is closed in its turn; `void` ones need not be.
std::string FirstUnbalanced(const std::string& html) {
  std::vector<std::string> open;
  for (size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    const size_t end = html.find('>', at);
    if (end == std::string::npos) return html.substr(at, 40);
    const bool closes = html[at + 1] == '/';
    const size_t begin = at + (closes ? 2 : 1);
    const std::string name = html.substr(begin, html.find_first_of(" >/", begin) - begin);
    if (name == "!DOCTYPE" || name == "meta" || html[end - 1] == '/') continue;
    if (!closes) {
      open.push_back(name);
    } else if (open.empty() || open.back() != name) {
      return html.substr(at, 40);
    } else {
      open.pop_back();
    }
  }
  return open.empty() ? "" : open.back();
}

TEST(HtmlReportTest, EveryPartOfTheResultIsThere) {
  const std::string html = VerifyResultAsHtml(Whole());
  for (const char* part :
       {"contradicted</strong>the reason", "demo/drafter", "first | aux_1", "third | aux_1 (+1)",
        "41.0", "-0.123", "-4.500", "norm_output", "not tried: no", "it is none",
        "set the ids to [1, 14, 26]", "boundary 3 was not recorded", "aux_0 (boundary 2)",
        "reference: next token right", "best: all tokens right so far", "1.380"}) {
    EXPECT_THAT(html, HasSubstr(part));
  }
  EXPECT_LT(html.find("contradicted</strong>"), html.find("<h2>"));  // the verdict comes first
}

TEST(HtmlReportTest, IsWellFormedWhetherFullOrEmpty) {
  EXPECT_EQ(FirstUnbalanced(VerifyResultAsHtml(Whole())), "");
  EXPECT_EQ(FirstUnbalanced(VerifyResultAsHtml(VerifyResult())), "");
}

TEST(HtmlReportTest, LoadsNothingAndRunsNothing) {
  const std::string html = VerifyResultAsHtml(Whole());
  for (const char* loader :
       {"<script", "<link", "<img", "href=", "src=", "url(", "@import", "http"}) {
    EXPECT_THAT(html, Not(HasSubstr(loader)));
  }
}

TEST(HtmlReportTest, NamesFromFilesAreEscapedWhereverTheyStand) {
  const std::string evil = "<script>alert('x')</script>\"&";
  VerifyResult result = Whole();
  result.reason = result.drafter = result.drafter_version = result.target = result.recording =
      result.source = result.dtype = result.pruned.rule = evil;
  result.declared = {{evil, evil, 0, evil}};
  for (CandidateResult& candidate : result.candidates) {
    candidate.wiring.tensors = {evil};
    candidate.wiring.claims = {evil};
  }
  for (WhatIf& row : result.what_if) row.setting = row.declared = row.value = row.why_not = evil;
  result.labels = {{evil, evil, evil, LabelVerdict::kUntested, evil}};
  result.profiles[0].tensor = result.profiles[0].claim = evil;
  result.advice = result.limits = {evil};
  const std::string html = VerifyResultAsHtml(result);
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("'x'")));
  EXPECT_EQ(FirstUnbalanced(html), "");
}

TEST(HtmlReportTest, TheDeclaredIsShownHoweverBadItIs) {
  VerifyResult result;
  for (int i = 0; i < 200; ++i) {
    result.candidates.push_back(Candidate(absl::StrCat("t", i), Standing::kExcluded, 0.1));
  }
  result.candidates[199].declared = true;
  const std::string html = VerifyResultAsHtml(result);
  EXPECT_THAT(html, HasSubstr("t199 | aux_1"));
  EXPECT_THAT(html, Not(HasSubstr("t100 | aux_1")));
  EXPECT_THAT(html, HasSubstr("187 more are not shown"));
}

TEST(HtmlReportTest, NumbersThatAreNoneMoveNoMarkOutOfItsPlot) {
  VerifyResult result = Whole();
  result.candidates[0].test.difference = std::numeric_limits<double>::quiet_NaN();
  result.candidates[2].test.standard_error = std::numeric_limits<double>::infinity();
  result.profiles[0].rms_quantiles = {0, 0, 0, 0, 0, 0, 0};
  const std::string html = VerifyResultAsHtml(result);
  EXPECT_THAT(html, Not(HasSubstr("\"nan")));
  EXPECT_THAT(html, Not(HasSubstr("\"inf")));
  EXPECT_THAT(html, Not(HasSubstr("\"-nan")));
  EXPECT_THAT(html, HasSubstr("not compared"));
}

TEST(HtmlTextTest, ControlCharactersAndBytesThatAreNoUtf8AreReplaced) {
  const std::string replaced = "\xef\xbf\xbd";
  EXPECT_EQ(Escaped("a\nb\tc"), "a b c");
  EXPECT_EQ(Escaped(std::string("a\0b", 3)), "a" + replaced + "b");
  EXPECT_EQ(Escaped("\x1b[0m"), replaced + "[0m");
  EXPECT_EQ(Escaped("\xc3\xa4\xf0\x9f\x99\x82"), "\xc3\xa4\xf0\x9f\x99\x82");
  EXPECT_EQ(Escaped("\xc3("), replaced + "(");
  EXPECT_EQ(Escaped("\xe2\x82"), replaced + replaced);
  EXPECT_EQ(Escaped("\xff<"), replaced + "&lt;");
}

}  // namespace
}  // namespace aerie
