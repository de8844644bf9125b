#include "server/verify/verdict.h"

#include <functional>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace aerie {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

CandidateResult CandidateOf(const char* name, double difference, Standing standing) {
  CandidateResult candidate;
  candidate.wiring.tensors = {name};
  candidate.standing = standing;
  candidate.test.difference = difference;
  candidate.test.standard_error = 0.01;
  candidate.test.p_adjusted = standing == Standing::kOpen ? 0.5 : 1e-5;
  candidate.test.rows = 1000;
  candidate.test.sequences = 20;
  return candidate;
}

// A head whose declared wiring beats two others.
VerifyResult Sound() {
  VerifyResult result;
  result.rows = 1000;
  result.sequences = 20;
  result.candidates = {CandidateOf("declared", 0.0, Standing::kReference),
                       CandidateOf("near", 0.1, Standing::kExcluded),
                       CandidateOf("far", 5.0, Standing::kExcluded)};
  result.candidates[0].declared = true;
  result.reference = result.best = 0;
  result.declared = {{"output-of-layer", "[2, 15, 27]", 0, ""}};
  return result;
}

struct Case {
  const char* what;
  std::function<void(VerifyResult&)> change;
  Verdict verdict;
  const char* reason;
};

void SetStanding(VerifyResult& result, double difference, Standing standing) {
  result.candidates[1] = CandidateOf("near", difference, standing);
  if (difference < 0.0) result.best = 1;
}

const Case kCases[] = {
    {"sound", [](VerifyResult&) {}, Verdict::kVerified, "beats all 2 others"},
    {"another is better", [](VerifyResult& r) { SetStanding(r, -0.3, Standing::kBetter); },
     Verdict::kContradicted, "near is better than the declared declared by 0.300"},
    {"another is as good", [](VerifyResult& r) { SetStanding(r, 0.001, Standing::kEquivalent); },
     Verdict::kEquivalent, "1 are as good"},
    {"another is better by nothing",
     [](VerifyResult& r) { SetStanding(r, -0.002, Standing::kEquivalent); }, Verdict::kEquivalent,
     "1 are as good"},
    {"another is open", [](VerifyResult& r) { SetStanding(r, 0.001, Standing::kOpen); },
     Verdict::kUndecided, "1 candidates could not be told"},
    {"few sequences", [](VerifyResult& r) { r.sequences = 4; }, Verdict::kUndecided, "4 sequences"},
    {"declared is not recorded",
     [](VerifyResult& r) {
       r.candidates[0].declared = false;
       r.declared = {{"output-of-layer", "[2, 15, 27]", -1, "nothing claims boundary 15"}};
     },
     Verdict::kUndecided, "cannot be shown: nothing claims boundary 15"},
    {"the other reading is not recorded",
     [](VerifyResult& r) {
       r.declared.push_back({"input-of-layer", "[1, 14, 26]", -1, "no boundary 1"});
     },
     Verdict::kUndecided, "could not be tried: no boundary 1"},
    {"a setting is better",
     [](VerifyResult& r) {
       WhatIf what_if;
       what_if.setting = "norm_output";
       what_if.declared = "off";
       what_if.value = "on";
       what_if.scored = what_if.better = true;
       what_if.test.difference = -0.5;
       r.what_if.push_back(what_if);
     },
     Verdict::kContradicted, "with norm_output on than with the off of its files"},
    {"values say that rows are stale",
     [](VerifyResult& r) {
       r.alignment.shift = 1;
       r.candidates[1] = CandidateOf("near", -1.0, Standing::kBetter);
       r.candidates[1].wiring.shift = 1;
     },
     Verdict::kContradicted, "shifted by +1"},
    {"values say that rows are ahead, and they leak",
     [](VerifyResult& r) {
       r.alignment.shift = -1;
       r.candidates[1] = CandidateOf("near", 0.1, Standing::kExcluded);
       r.candidates[1].wiring.shift = -1;
     },
     Verdict::kContradicted, "shifted by -1"},
    {"values and scores disagree",
     [](VerifyResult& r) {
       r.alignment.shift = -1;
       r.candidates[1] = CandidateOf("near", 2.0, Standing::kExcluded);
       r.candidates[1].wiring.shift = -1;
     },
     Verdict::kUndecided, "contradict each other"},
    {"fresher states are better, and nothing says whose they are",
     [](VerifyResult& r) {
       SetStanding(r, -0.5, Standing::kBetter);
       r.candidates[1].wiring.shift = 1;
     },
     Verdict::kUndecided, "values do not tell"},
    {"fresher states are better although values exclude them as a leak",
     [](VerifyResult& r) {
       SetStanding(r, -0.5, Standing::kBetter);
       r.alignment.shift = 0;
     },
     Verdict::kContradicted, "near is better"},
};

TEST(VerdictTest, FollowsFromStandings) {
  for (const Case& c : kCases) {
    VerifyResult result = Sound();
    c.change(result);
    Judge(result, {});
    EXPECT_EQ(VerdictName(result.verdict), VerdictName(c.verdict)) << c.what;
    EXPECT_THAT(result.reason, HasSubstr(c.reason)) << c.what;
  }
}

TEST(VerdictTest, HasTheMarginOfTheContenderThatDecides) {
  VerifyResult result = Sound();
  Judge(result, {});
  EXPECT_DOUBLE_EQ(result.margin, 0.1);
  EXPECT_DOUBLE_EQ(result.p_value, 1e-5);
  SetStanding(result, -0.3, Standing::kBetter);
  Judge(result, {});
  EXPECT_DOUBLE_EQ(result.margin, 0.3);
}

TEST(VerdictTest, SaysHowManyRowsWouldDecide) {
  VerifyResult result = Sound();
  SetStanding(result, 0.05, Standing::kOpen);
  result.candidates[1].test.standard_error = 0.05;
  Judge(result, {});
  EXPECT_EQ(result.rows_needed, 9000);
  EXPECT_THAT(result.equivalent, ElementsAre());
}

TEST(VerdictTest, IsTakenBackWhenValuesProveALabelWrong) {
  LabelResult right, wrong;
  right.verdict = LabelVerdict::kSupported;
  wrong = {.tensor = "aux_0", .claim = "the embedding"};
  wrong.verdict = LabelVerdict::kContradicted;
  VerifyResult result = Sound();
  Judge(result, StatisticsOptions());
  DistrustLabels({right}, result);
  EXPECT_EQ(result.verdict, Verdict::kVerified);
  DistrustLabels({right, wrong}, result);
  EXPECT_EQ(result.verdict, Verdict::kUndecided);
  EXPECT_THAT(result.reason, HasSubstr("tensor aux_0 is not the embedding"));
  EXPECT_THAT(result.reason, HasSubstr("aerie-verify match"));

  VerifyResult contradicted = Sound();
  SetStanding(contradicted, -0.3, Standing::kBetter);
  Judge(contradicted, StatisticsOptions());
  DistrustLabels({wrong}, contradicted);
  EXPECT_EQ(contradicted.verdict, Verdict::kContradicted);
}

TEST(VerdictTest, EachHasItsExitCode) {
  EXPECT_EQ(ExitCode(Verdict::kVerified), 0);
  EXPECT_EQ(ExitCode(Verdict::kContradicted), 3);
  EXPECT_EQ(ExitCode(Verdict::kUndecided), 4);
  EXPECT_EQ(ExitCode(Verdict::kEquivalent), 5);
}

// A declared wiring that is worse than another by `loss` nats a row, measured on texts of which
// each has its own taste.
Verdict JudgePlanted(double loss, int32_t sequences, std::mt19937& random) {
  std::normal_distribution<double> normal;
  RowPlan plan;
  std::vector<float> declared, truth, third;
  for (int32_t s = 0; s < sequences; ++s) {
    plan.ranges.push_back({s, 1, 30 + static_cast<int64_t>(random() % 90)});
    const double taste = 0.08 * normal(random);
    for (int64_t i = 0; i < plan.ranges.back().count; ++i) {
      const double row = -2.5 + normal(random);
      truth.push_back(static_cast<float>(row));
      declared.push_back(static_cast<float>(row - loss + taste + 0.2 * normal(random)));
      third.push_back(static_cast<float>(row - 3.0 + taste));
    }
  }
  const StatisticsOptions options;
  VerifyResult result = Sound();
  result.sequences = sequences;
  result.rows = plan.rows();
  std::vector<PairedTest> tests = {ComparePaired(plan, declared, truth),
                                   ComparePaired(plan, declared, third)};
  AdjustByHolm(std::vector<PairedTest*>{&tests[0], &tests[1]});
  for (int i = 0; i < 2; ++i) {
    result.candidates[i + 1].test = tests[i];
    result.candidates[i + 1].standing = StandingOf(tests[i], options);
  }
  Judge(result, options);
  return result.verdict;
}

TEST(VerdictTest, NeverVerifiesAPlantedWiringAndContradictsItWithEnoughTexts) {
  std::mt19937 random(11);
  for (const double loss : {0.0, 0.005, 0.07, 0.3}) {
    for (const int32_t sequences : {3, 8, 12, 48}) {
      int verified = 0;
      int contradicted = 0;
      constexpr int kTrials = 200;
      for (int i = 0; i < kTrials; ++i) {
        const Verdict verdict = JudgePlanted(loss, sequences, random);
        verified += verdict == Verdict::kVerified ? 1 : 0;
        contradicted += verdict == Verdict::kContradicted ? 1 : 0;
      }
      // One that is as good as the truth is taken for better by chance as often as alpha allows.
      EXPECT_LE(verified, loss < 0.01 ? 2 : 0) << loss << " on " << sequences;
      if (loss == 0.3 && sequences >= 12) {
        EXPECT_GE(contradicted, kTrials * 95 / 100) << sequences;
      }
      if (loss == 0.07 && sequences >= 48) {
        EXPECT_GE(contradicted, kTrials * 80 / 100);
      }
      if (loss < 0.01) {
        EXPECT_LE(contradicted, 2) << loss << " on " << sequences;
      }
    }
  }
}

}  // namespace
}  // namespace aerie
