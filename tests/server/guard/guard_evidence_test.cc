// The parts that weigh one kind of evidence each: tokens, drafts, replays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "server/guard/drafting_evidence.h"
#include "server/guard/replay.h"
#include "server/guard/token_alignment.h"

namespace aerie {
namespace {

using ::testing::ElementsAre;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Rows whose first feature is their token's and whose second is none's.
std::vector<float> RowOf(int32_t token, int32_t position) {
  return {static_cast<float>(token * token % 17), static_cast<float>(position * 7 % 3)};
}

// Distances of rows whose states belong to the token `lag` in front of their own.
AlignmentSums Align(size_t lag) {
  TokenAlignment alignment(2);
  const auto token = [](int32_t position) { return (position * position * 5 + position / 3) % 13; };
  for (int32_t p = 4; p < 200; ++p) {
    alignment.Add(RowOf(token(p - static_cast<int32_t>(lag)), p),
                  {token(p), token(p - 1), token(p - 2)});
  }
  return alignment.Take();
}

TEST(TokenAlignmentTest, FindsTheTokenThatStatesBelongTo) {
  for (size_t lag = 0; lag < kAlignments; ++lag) {
    const AlignmentSums sums = Align(lag);
    EXPECT_GT(sums.ScarcestPairs(), 20);
    for (size_t i = 0; i < kAlignments; ++i) {
      if (i == lag) {
        EXPECT_LT(sums.Ratio(i), 0.4) << lag;
      } else {
        EXPECT_GT(sums.Ratio(i), 0.7) << lag << ", " << i;
      }
    }
  }
}

TEST(TokenAlignmentTest, LearnsNothingFromARepeatedPhrase) {
  TokenAlignment alignment(2);
  for (int32_t p = 0; p < 100; ++p) alignment.Add(RowOf(3, p), {3, 3, 3});
  const AlignmentSums sums = alignment.Take();
  EXPECT_EQ(sums.ScarcestPairs(), 0);
  EXPECT_EQ(sums.any_pairs, 0);
  EXPECT_EQ(sums.Ratio(kRightAlignment), 1.0);
}

TEST(TokenAlignmentTest, ForgetsWhatWasTaken) {
  TokenAlignment alignment(2);
  for (int32_t p = 0; p < 50; ++p) alignment.Add(RowOf(p % 5, p), {p % 5, p % 7, p % 11});
  EXPECT_GT(alignment.Take().any_pairs, 0);
  EXPECT_EQ(alignment.Take().any_pairs, 0);
}

DraftingExpectation Expectation() {
  return {.accuracy = 0.4, .log_likelihood = -2.5, .acceptance = {0.4, 0.15, 0.05}};
}

TEST(DraftingEvidenceTest, CountsAcceptanceByDepth) {
  DraftingEvidence evidence(Expectation());
  evidence.AddJudgement(3, 0);
  evidence.AddJudgement(3, 2);
  evidence.AddJudgement(1, 1);
  const DraftingReport report = evidence.Report();
  EXPECT_THAT(report.acceptance, ElementsAre(2.0 / 3.0, 0.5, 0.0));
  EXPECT_EQ(report.judged, 3);
  EXPECT_NEAR(*report.accept_length, 1 + 2.0 / 3.0 + 0.5, 1e-12);
  EXPECT_NEAR(report.expected_accept_length, 1.6, 1e-12);
}

TEST(DraftingEvidenceTest, LeavesTokensOutsideTheVocabularyOutOfTheLikelihood) {
  DraftingEvidence evidence(Expectation());
  evidence.AddScores({-1.0f, -kInfinity, -3.0f}, 1);
  EXPECT_NEAR(*evidence.Report().log_likelihood, -2.0, 1e-12);
  EXPECT_NEAR(*evidence.Report().accuracy, 1.0 / 3.0, 1e-12);
}

TEST(DraftingEvidenceTest, SeesAcceptanceFarBelowThePromiseOnceThereIsEnoughOfIt) {
  DraftingEvidence low(Expectation()), fair(Expectation());
  for (int i = 0; i < 200; ++i) {
    low.AddJudgement(3, i % 20 == 0 ? 1 : 0);
    fair.AddJudgement(3, i % 10 < 3 ? 1 : 0);
  }
  EXPECT_TRUE(low.Report().below_expectation);
  EXPECT_FALSE(fair.Report().below_expectation);
}

TEST(DraftingEvidenceTest, SaysNothingOfFewProposals) {
  DraftingEvidence evidence(Expectation());
  for (int i = 0; i < 99; ++i) evidence.AddJudgement(3, 0);
  EXPECT_FALSE(evidence.Report().below_expectation);
  evidence.AddJudgement(3, 0);
  EXPECT_TRUE(evidence.Report().below_expectation);
}

TEST(DraftingEvidenceTest, ForgetsTheDistantPast) {
  DraftingEvidence evidence(Expectation());
  for (int i = 0; i < 10'000; ++i) evidence.AddJudgement(1, 0);
  for (int i = 0; i < 10'000; ++i) evidence.AddJudgement(1, 1);
  EXPECT_GT(evidence.Report().acceptance[0], 0.8);
}

TEST(DraftingEvidenceTest, NoticesAWorkerThatCountsOtherwise) {
  DraftingEvidence evidence(Expectation());
  for (int i = 0; i < 63; ++i) evidence.AddWorkerCount(1, 0);
  EXPECT_FALSE(WorkerContradicts(evidence.Report()));
  evidence.AddWorkerCount(1, 0);
  EXPECT_TRUE(WorkerContradicts(evidence.Report()));
  for (int i = 0; i < 400; ++i) evidence.AddWorkerCount(1, 1);
  EXPECT_FALSE(WorkerContradicts(evidence.Report()));
}

TEST(ReplayTest, TriesAllOrdersOfFewCapturesAndSwapsOfMany) {
  EXPECT_EQ(CandidateOrders(1).size(), 1);
  EXPECT_EQ(CandidateOrders(3).size(), 6);
  EXPECT_EQ(CandidateOrders(5).size(), 11);
  for (const int32_t captures : {1, 3, 5}) {
    EXPECT_TRUE(CandidateOrders(captures).front().AsSent()) << captures;
  }
}

TEST(ReplayTest, ReordersTheCapturesOfEveryRow) {
  const ReplayRequest request{
      .tokens = {1, 2}, .dtype = DType::kBF16, .width = 6, .bytes = "aaaabbbbccccAAAABBBBCCCC"};
  EXPECT_EQ(request.Reordered({{0, 1, 2}}), request.bytes);
  EXPECT_EQ(request.Reordered({{2, 0, 1}}), "ccccaaaabbbbCCCCAAAABBBB");
}

ReplayScores Scores(const std::vector<float>& by_order) {
  ReplayScores scores;
  for (const float score : by_order) scores.log_probs.push_back({score, -kInfinity, score - 1});
  return scores;
}

TEST(ReplayTest, ContradictsOnlyWhenAnotherOrderWinsEveryWindow) {
  ReplayEvidence evidence(2);
  evidence.Add(Scores({-5.0f, -3.0f}));
  evidence.Add(Scores({-5.0f, -3.0f}));
  EXPECT_FALSE(evidence.Contradicts());  // two windows are too few
  evidence.Add(Scores({-5.0f, -3.0f}));
  EXPECT_TRUE(evidence.Contradicts());
  EXPECT_EQ(evidence.Report().best, "in the order 1, 0");
  EXPECT_NEAR(evidence.Report().gain, 2.0, 1e-6);
  evidence.Add(Scores({-2.9f, -3.0f}));
  EXPECT_FALSE(evidence.Contradicts());
}

TEST(ReplayTest, DoesNotContradictOverWhatAHeadHardlyReads) {
  ReplayEvidence evidence(2);
  for (int i = 0; i < 8; ++i) evidence.Add(Scores({-2.59f, -2.52f}));
  EXPECT_FALSE(evidence.Contradicts());
}

}  // namespace
}  // namespace aerie
