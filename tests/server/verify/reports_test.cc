#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/verify/progress_bar.h"
#include "server/verify/report_json.h"
#include "server/verify/report_table.h"

namespace aerie {
namespace {

using nlohmann::json;
using testing::HasSubstr;

VerifyResult Sample() {
  VerifyResult result;
  result.verdict = Verdict::kContradicted;
  result.reason = "b is better";
  result.rows = 1524;
  result.sequences = 12;
  result.margin = 0.25;
  result.p_value = 1e-6;
  for (const char* name : {"b", "a"}) {
    CandidateResult candidate;
    candidate.wiring.tensors = {name, "x"};
    candidate.wiring.claims = {"boundary 2", "unlabelled"};
    result.candidates.push_back(candidate);
  }
  result.candidates[0].standing = Standing::kBetter;
  result.candidates[0].rival = true;
  result.candidates[0].wiring.shift = -1;
  result.candidates[0].depths = DepthScores{10, {0.5, 0.25}, {-1, -2}, {0.5, 0.125}, 1.625};
  result.candidates[1].standing = Standing::kReference;
  result.candidates[1].declared = true;
  result.candidates[1].test.t = -std::numeric_limits<double>::infinity();
  result.best = 0;
  result.reference = 1;
  result.declared = {{"output-of-layer", "[2, 15]", 1, ""}};
  result.labels = {{"a", "embed\xff", "embedding", LabelVerdict::kContradicted, "it is not"}};
  WhatIf what_if;
  what_if.setting = "norm_output";
  what_if.why_not = "no";
  result.what_if = {what_if};
  result.advice = {"do this"};
  result.limits = {"not that"};
  return result;
}

TEST(VerifyResultAsJsonTest, HasWhatMachinesRead) {
  const json report = json::parse(VerifyResultAsJson(Sample()));
  EXPECT_EQ(report["verdict"], "contradicted");
  EXPECT_EQ(report["exit_code"], 3);
  EXPECT_EQ(report["best"]["tensors"], json({"b", "x"}));
  EXPECT_EQ(report["best"]["shift"], -1);
  EXPECT_EQ(report["best"]["depths"]["accept_length"], 1.625);
  EXPECT_EQ(report["declared"]["tensors"], json({"a", "x"}));
  EXPECT_EQ(report["declared"]["test"]["t"], nullptr);
  EXPECT_EQ(report["readings"][0]["wiring"], "[2, 15]");
  EXPECT_EQ(report["margin"], 0.25);
  EXPECT_EQ(report["p_value"], 1e-6);
  EXPECT_EQ(report["rows"], 1524);
  EXPECT_EQ(report["rows_needed"], nullptr);
  EXPECT_EQ(report["candidates"].size(), 2);
  EXPECT_EQ(report["candidates"][0]["standing"], "better");
  EXPECT_EQ(report["labels"][0]["verdict"], "contradicted");
  EXPECT_EQ(report["what_if"][0]["depths"], nullptr);
  EXPECT_EQ(report["advice"], json({"do this"}));
  EXPECT_TRUE(report["pruned"]["exhaustive"]);
  EXPECT_EQ(report["alignment"]["shift"], nullptr);
}

TEST(VerifyResultAsJsonTest, HasNoDeclaredWiringWhenNoneCouldBeShown) {
  VerifyResult result = Sample();
  result.candidates[1].declared = false;
  const json report = json::parse(VerifyResultAsJson(result));
  EXPECT_EQ(report["declared"], nullptr);
}

TEST(VerifyResultAsTableTest, BeginsWithTheVerdictAndShowsEveryPart) {
  const std::string table = VerifyResultAsTable(Sample());
  EXPECT_EQ(table.rfind("CONTRADICTED: b is better\n", 0), 0);
  EXPECT_THAT(table, HasSubstr("declared [2, 15], read as output-of-layer"));
  EXPECT_THAT(table, HasSubstr("b | x, states shifted by -1"));
  EXPECT_THAT(table, HasSubstr("a | x  (declared)"));
  EXPECT_THAT(table, HasSubstr("not tried: no"));
  EXPECT_THAT(table, HasSubstr("* do this"));
  EXPECT_THAT(table, HasSubstr("* not that"));
}

TEST(VerifyResultAsTableTest, StaysShortWithHundredsOfCandidates) {
  VerifyResult result = Sample();
  CandidateResult excluded;
  excluded.wiring.tensors = {"z"};
  excluded.standing = Standing::kExcluded;
  result.candidates.insert(result.candidates.end(), 300, excluded);
  const std::string table = VerifyResultAsTable(result);
  EXPECT_LT(std::count(table.begin(), table.end(), '\n'), 50);
  EXPECT_THAT(table, HasSubstr("... and 295 more"));
}

TEST(ProgressLineTest, FillsUpAndNeverOverflows) {
  EXPECT_EQ(ProgressLine("x", 0, 10), "[..............................]   0 % x");
  EXPECT_EQ(ProgressLine("x", 5, 10), "[###############...............]  50 % x");
  EXPECT_EQ(ProgressLine("x", 20, 10), "[##############################] 100 % x");
  EXPECT_THAT(ProgressLine("x", 0, 0), HasSubstr("  0 %"));
}

}  // namespace
}  // namespace aerie
