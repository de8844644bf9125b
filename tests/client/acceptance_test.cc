#include "client/acceptance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace aerie {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::ValuesIn;

struct ChainCase {
  std::string name;
  std::vector<int32_t> draft, argmax;
  int32_t accepted;
  std::vector<int32_t> committed;
};

class VerifyGreedyChainTest : public ::testing::TestWithParam<ChainCase> {};

TEST_P(VerifyGreedyChainTest, KeepsTheLongestEqualPrefixAndAddsTheBonus) {
  const ChainCase& c = GetParam();
  const auto verdict = VerifyGreedyChain(c.draft, c.argmax);
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(verdict->accepted, c.accepted);
  EXPECT_EQ(verdict->bonus, c.committed.back());
  EXPECT_THAT(verdict->tokens, ElementsAreArray(c.committed));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, VerifyGreedyChainTest,
    ValuesIn(std::vector<ChainCase>{
        {"NothingDraftedGivesTheBonus", {}, {7}, 0, {7}},
        {"FirstTokenDiffers", {5, 6}, {4, 6, 9}, 0, {4}},
        {"MiddleDiffers", {5, 6, 7}, {5, 9, 7, 8}, 1, {5, 9}},
        {"EqualTokensBehindADifferenceNeverCount", {5, 6, 7}, {5, 1, 7, 7}, 1, {5, 1}},
        {"WholeChainKept", {5, 6, 7}, {5, 6, 7, 8}, 3, {5, 6, 7, 8}}}),
    [](const auto& test) { return test.param.name; });

TEST(VerifyGreedyChainErrorTest, NamesBothLengthsWhenTheTargetGaveTooFewChoices) {
  const auto verdict = VerifyGreedyChain({5, 6, 7}, {5, 6, 7});
  ASSERT_EQ(verdict.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(verdict.status().message()),
              ::testing::AllOf(::testing::HasSubstr("3 choices"),
                               ::testing::HasSubstr("chain of 3 tokens")));
}

TEST(AcceptanceTallyTest, IsZeroBeforeTheFirstDraft) {
  const AcceptanceTally tally;
  EXPECT_EQ(tally.MeanAcceptLength(), 0.0);
  EXPECT_EQ(tally.AcceptanceRate(), 0.0);
  EXPECT_THAT(tally.RateByPosition(), IsEmpty());
}

TEST(AcceptanceTallyTest, CountsTheBonusInTheAcceptLengthButNotInTheRate) {
  AcceptanceTally tally;
  tally.Add(4, 3);
  tally.Add(4, 0);
  EXPECT_THAT(tally.MeanAcceptLength(), DoubleEq(2.5));
  EXPECT_THAT(tally.AcceptanceRate(), DoubleEq(3.0 / 8.0));
}

TEST(AcceptanceTallyTest, DividesByTheProposalsThatReachedAPositionWhenKVaries) {
  AcceptanceTally tally;
  tally.Add(3, 2);
  tally.Add(1, 1);
  tally.Add(1, 0);
  EXPECT_THAT(tally.RateByPosition(), ElementsAre(DoubleEq(2.0 / 3.0), DoubleEq(1.0), 0.0));
  EXPECT_THAT(tally.ConditionalRateByPosition(),
              ElementsAre(DoubleEq(2.0 / 3.0), DoubleEq(0.5), 0.0));
}

TEST(AcceptanceTallyTest, CountsATreeByItsLevelsAndByAllItsTokens) {
  AcceptanceTally tally;
  tally.Add(/*proposed=*/16, /*depth=*/3, /*accepted=*/2);
  tally.Add(/*proposed=*/2, /*depth=*/2, /*accepted=*/0);
  EXPECT_EQ(tally.draft_tokens(), 18);
  EXPECT_EQ(tally.accepted_tokens(), 2);
  EXPECT_THAT(tally.proposed_at(), ElementsAre(2, 2, 1));
  EXPECT_THAT(tally.accepted_at(), ElementsAre(1, 1, 0));
  EXPECT_DOUBLE_EQ(tally.MeanAcceptLength(), 2.0);
}

TEST(AcceptanceTallyTest, MergesToWhatOneTallyWouldHaveCounted) {
  AcceptanceTally left, right, both;
  for (int i = 0; i < 10; ++i) {
    const int32_t proposed = 1 + i % 4, accepted = i % (proposed + 1);
    (i < 4 ? left : right).Add(proposed, accepted);
    both.Add(proposed, accepted);
  }
  left.Merge(right);
  EXPECT_EQ(left, both);
}

}  // namespace
}  // namespace aerie
