#include "server/verify/row_scoring.h"

#include <algorithm>
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/verify/statistics.h"
#include "tests/server/verify/fake_head.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using testing::ElementsAre;
using testing::Pointwise;

CaptureSet Lengths(const std::vector<std::vector<int32_t>>& tokens,
                   std::vector<std::optional<int64_t>> prompts) {
  CaptureSet captures;
  for (size_t i = 0; i < tokens.size(); ++i) {
    captures.sequences.push_back({std::to_string(i), tokens[i], prompts[i], {}});
  }
  return captures;
}

TEST(PlanRowsTest, TakesRowsThatPredictGeneratedTokens) {
  const std::vector<std::vector<int32_t>> tokens = {
      std::vector<int32_t>(10), std::vector<int32_t>(10), std::vector<int32_t>(3),
      std::vector<int32_t>(10)};
  // The first row of a sequence has no state in front of it for a shifted candidate. The last two
  // positions have no token behind their row.
  const CaptureSet captures = Lengths(tokens, {4, std::nullopt, std::nullopt, 9});
  EXPECT_THAT(PlanRows(captures, 1000, 1).ranges,
              ElementsAre(RowRange{0, 3, 5}, RowRange{1, 1, 7}));
}

RowPlan EquallyLong(size_t sequences, int64_t rows) {
  RowPlan plan;
  for (size_t i = 0; i < sequences; ++i) plan.ranges.push_back({static_cast<int32_t>(i), 1, rows});
  return plan;
}

TEST(PlanRowsTest, SpreadsABoundOverManySequences) {
  const std::vector<std::vector<int32_t>> tokens(100, std::vector<int32_t>(103));
  const CaptureSet captures = Lengths(tokens, std::vector<std::optional<int64_t>>(100));
  const RowPlan all = PlanRows(captures, 5000, 10);
  EXPECT_EQ(all.ranges.size(), 100);
  EXPECT_EQ(all.rows(), 5000);
  const RowPlan few = PlanRows(captures, 900, 30);
  EXPECT_EQ(few.ranges.size(), 30);
  EXPECT_EQ(few.rows(), 900);
  EXPECT_GT(few.ranges.back().sequence, 80);  // not only the first ones
}

TEST(CoarsePlanTest, GivesToLongSequencesWhatShortOnesLeave) {
  RowPlan plan;
  plan.ranges = {{0, 1, 2}, {1, 5, 50}, {2, 3, 50}};
  const RowPlan coarse = CoarsePlan(plan, 42, 1);
  EXPECT_THAT(coarse.ranges,
              ElementsAre(RowRange{0, 1, 2}, RowRange{1, 5, 20}, RowRange{2, 3, 20}));
}

TEST(CoarsePlanTest, LeavesSequencesOutRatherThanTakeAFewRowsOfEach) {
  const auto taken = [](const RowPlan& plan) {
    return std::count_if(plan.ranges.begin(), plan.ranges.end(),
                         [](const RowRange& range) { return range.count > 0; });
  };
  const RowPlan coarse = CoarsePlan(EquallyLong(64, 200), 640, 32);
  EXPECT_EQ(taken(coarse), 20);
  EXPECT_EQ(coarse.rows(), 640);
  EXPECT_EQ(coarse.ranges.size(), 64);
  EXPECT_EQ(taken(CoarsePlan(EquallyLong(64, 200), 64, 32)), 2 * kMinSequences);
  EXPECT_EQ(taken(CoarsePlan(EquallyLong(5, 200), 64, 32)), 5);
}

TEST(CoarsePlanTest, OfMoreRowsHoldsThatOfFewer) {
  for (const size_t sequences : {1, 2, 7, 33, 52}) {
    const RowPlan plan = EquallyLong(sequences, 300);
    RowPlan fewer = CoarsePlan(plan, 100, 32);
    for (const int64_t rows : {400, 1600, 6400}) {
      const RowPlan more = CoarsePlan(plan, rows, 32);
      for (size_t i = 0; i < sequences; ++i) {
        EXPECT_LE(fewer.ranges[i].count, more.ranges[i].count) << sequences << ", " << i;
      }
      fewer = more;
    }
  }
}

class RowScorerTest : public testing::Test {
 protected:
  RowScores Score(FakeHead& head, const Candidate& candidate, int64_t rows_per_pass) {
    RowScorer scorer(head, recording_.captures, rows_per_pass);
    const auto scores = scorer.Score(candidate, plan_);
    EXPECT_THAT(scores, IsOk());
    return scores.ok() ? *scores : RowScores();
  }

  const FakeRecording recording_{9, 7};
  const RowPlan plan_ = PlanRows(recording_.captures, 100000, 1);
  const Candidate truth_{{2, 5, 8}, 0};
};

TEST_F(RowScorerTest, GivesTheSameHoweverPassesAreCut) {
  FakeHead head((FakeTruth()));
  const RowScores whole = Score(head, truth_, 100000);
  EXPECT_EQ(head.passes(), 2);  // in front of the scored rows, and these
  for (const int64_t rows_per_pass : {1, 7, 64, 200}) {
    FakeHead other((FakeTruth()));
    const RowScores cut = Score(other, truth_, rows_per_pass);
    EXPECT_THAT(cut.log_likelihood, Pointwise(testing::FloatEq(), whole.log_likelihood));
    EXPECT_EQ(cut.hit, whole.hit);
    EXPECT_LE(other.largest_pass(), rows_per_pass);
    EXPECT_EQ(other.open_slots(), 0);
  }
}

TEST_F(RowScorerTest, GivesTheSameWhenTheStoreHoldsOneSequenceAtATime) {
  FakeHead head((FakeTruth()));
  FakeHead small(FakeTruth(), 17);  // 68 rows; sequences have up to 66
  EXPECT_EQ(Score(head, truth_, 512).log_likelihood, Score(small, truth_, 512).log_likelihood);
}

TEST_F(RowScorerTest, RefusesASequenceThatTheStoreCannotHold) {
  FakeHead small(FakeTruth(), 4);
  RowScorer scorer(small, recording_.captures, 512);
  EXPECT_THAT(scorer.Score(truth_, plan_), StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_F(RowScorerTest, PrefersTheTruth) {
  FakeHead head((FakeTruth()));
  const double truth = Score(head, truth_, 512).mean_log_likelihood();
  for (const Candidate& wrong : {Candidate{{5, 2, 8}, 0}, Candidate{{2, 5, 8}, 1},
                                 Candidate{{2, 5, 8}, -1}, Candidate{{2, 5, 7}, 0}}) {
    EXPECT_LT(Score(head, wrong, 512).mean_log_likelihood(), truth - 0.02);
  }
}

TEST_F(RowScorerTest, CountsTokensOutsideTheDraftVocabularyAsMisses) {
  FakeHead head((FakeTruth()));
  const RowScores scores = Score(head, truth_, 512);
  int64_t outside = 0;
  size_t at = 0;
  for (const RowRange& range : plan_.ranges) {
    for (int64_t row = range.first; row < range.first + range.count; ++row, ++at) {
      const bool is_outside =
          recording_.captures.sequences[range.sequence].tokens[row + 2] >= FakeHead::kFirstOutside;
      EXPECT_EQ(std::isinf(scores.log_likelihood[at]), is_outside);
      EXPECT_FALSE(is_outside && scores.hit[at] != 0);
      outside += is_outside ? 1 : 0;
    }
  }
  EXPECT_GT(outside, 3);
  EXPECT_EQ(scores.rows_outside_vocabulary(), outside);
}

TEST_F(RowScorerTest, GivesRowsWithoutFiniteScoresTheWorst) {
  FakeTruth broken;
  broken.finite = false;
  FakeHead head(broken);
  const RowScores scores = Score(head, truth_, 512);
  EXPECT_FLOAT_EQ(scores.mean_log_likelihood(), kNonFiniteLogLikelihood);
  EXPECT_DOUBLE_EQ(scores.accuracy(), 0.0);
}

TEST(AssembleRowsTest, LaysCapturesSideBySideAndShiftsThem) {
  const FakeRecording recording(4, 1, 10);
  const auto rows =
      AssembleRows(recording.captures, recording.captures.sequences[0], {{3, 1}, 1}, 8, 2);
  // Tensor, position and text of each; behind the last position stands the last.
  EXPECT_THAT(rows, ElementsAre(3, 9, 1, 1, 9, 1, 3, 9, 1, 1, 9, 1));
}

}  // namespace
}  // namespace aerie
