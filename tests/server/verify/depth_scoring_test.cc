#include "server/verify/depth_scoring.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/verify/row_scoring.h"
#include "tests/server/verify/fake_head.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::Pointwise;

constexpr float kOutside = -std::numeric_limits<float>::infinity();

class ChainScorerTest : public testing::Test {
 protected:
  ChainScores Score(FakeHead& head, const ChainPlan& plan, int64_t rows_per_pass = 512) {
    ChainScorer scorer(head, recording_.captures, rows_per_pass);
    const auto scores = scorer.Score({{2, 5, 8}, 0}, plan);
    EXPECT_THAT(scores, IsOk());
    return scores.ok() ? *scores : ChainScores();
  }

  const FakeRecording recording_{9, 7};
  const RowPlan rows_ = PlanRows(recording_.captures, 100000, 1);
};

TEST_F(ChainScorerTest, ScoresDepthOneAsRowsAreScored) {
  FakeHead head((FakeTruth()));
  RowScorer scorer(head, recording_.captures, 512);
  const auto rows = scorer.Score({{2, 5, 8}, 0}, rows_);
  ASSERT_THAT(rows, IsOk());
  const ChainPlan plan = PlanChains(recording_.captures, rows_, 1, 100000);
  EXPECT_EQ(plan.size(), rows_.rows());
  EXPECT_THAT(Score(head, plan).depths[0].log_likelihood,
              Pointwise(testing::FloatEq(), rows->log_likelihood));
}

TEST_F(ChainScorerTest, GivesTheSameHoweverPassesAndGroupsAreCut) {
  const ChainPlan plan = PlanChains(recording_.captures, rows_, 4, 60);
  FakeHead head((FakeTruth()));
  const ChainScores whole = Score(head, plan);
  FakeHead small(FakeTruth(), 18);
  const ChainScores cut = Score(small, plan, 3);
  for (int depth = 0; depth < 4; ++depth) {
    EXPECT_EQ(cut.depths[depth].log_likelihood, whole.depths[depth].log_likelihood);
  }
  EXPECT_EQ(small.open_slots(), 0);
}

TEST_F(ChainScorerTest, LosesWithDepthWhatTheHeadLoses) {
  FakeHead head((FakeTruth()));
  const DepthScores scores =
      Score(head, PlanChains(recording_.captures, rows_, 3, 100000)).Summary();
  ASSERT_EQ(scores.log_likelihood.size(), 3);
  EXPECT_NEAR(scores.log_likelihood[0] - scores.log_likelihood[2], 0.8, 0.1);
  EXPECT_GT(scores.accuracy[0], scores.accuracy[2]);
}

TEST_F(ChainScorerTest, StartsOnlyWhereAllTokensFollow) {
  const ChainPlan plan = PlanChains(recording_.captures, rows_, 5, 100000);
  for (const ChainStarts& starts : plan.starts) {
    EXPECT_EQ(starts.rows.back() + 1 + 5,
              recording_.captures.sequences[starts.sequence].length() - 1);
  }
  const ChainPlan sparse = PlanChains(recording_.captures, rows_, 5, 40);
  EXPECT_LE(sparse.size(), 42);
  EXPECT_GE(sparse.size(), 30);
}

TEST(ChainScoresTest, AcceptsAChainUpToItsFirstMiss) {
  ChainScores scores;
  scores.depths.resize(3);
  scores.depths[0] = {{-1, -1, kOutside, -3}, {1, 1, 0, 1}};
  scores.depths[1] = {{-1, -2, kOutside, -1}, {1, 0, 1, 1}};
  scores.depths[2] = {{-1, -6, kOutside, kOutside}, {1, 1, 1, 0}};
  const DepthScores summary = scores.Summary();
  EXPECT_THAT(summary.accuracy, ElementsAre(0.75, 0.75, 0.75));
  EXPECT_THAT(summary.acceptance, ElementsAre(0.75, 0.5, 0.25));
  EXPECT_DOUBLE_EQ(summary.accept_length, 2.5);
  EXPECT_THAT(summary.log_likelihood[2], DoubleNear(-3.5, 1e-6));
  EXPECT_THAT(scores.MeanLogLikelihoods(), ElementsAre(-1.0f, -3.0f, kOutside, -2.0f));
}

}  // namespace
}  // namespace aerie
