#include "common/draft_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/acceptance_record.h"

namespace aerie {
namespace {

using ::testing::ElementsAre;

DraftTree Chain(const std::vector<int32_t>& tokens) {
  DraftTree tree;
  for (const int32_t token : tokens) tree.AppendToChain(token, -0.5f);
  return tree;
}

TEST(DraftTreeTest, AChainHangsEachTokenUnderTheOneBefore) {
  const DraftTree chain = Chain({7, 8, 9});
  EXPECT_THAT(chain.parents, ElementsAre(0, 1, 2));
  EXPECT_TRUE(chain.Validate().ok());
}

TEST(DraftTreeTest, CountsAcceptedUpToTheFirstDifference) {
  const DraftTree chain = Chain({7, 8, 9});
  EXPECT_EQ(chain.CountAccepted({7, 8, 1, 9}), 2);
  EXPECT_EQ(chain.CountAccepted({7, 8, 9, 4}), 3);
  EXPECT_EQ(chain.CountAccepted({7}), 1);
  EXPECT_EQ(chain.CountAccepted({8, 8, 9}), 0);
  EXPECT_EQ(chain.CountAccepted({}), 0);
  EXPECT_EQ(DraftTree().CountAccepted({7}), 0);
}

TEST(DraftTreeTest, FollowsThePathOfATreeThatTheTargetTook) {
  DraftTree tree;  // root -> {5, 6}, 6 -> {5, 7}
  tree.tokens = {5, 6, 5, 7};
  tree.parents = {0, 0, 2, 2};
  tree.log_probs = {-1, -1, -1, -1};
  ASSERT_TRUE(tree.Validate().ok());
  EXPECT_EQ(tree.CountAccepted({6, 7}), 2);
  EXPECT_EQ(tree.CountAccepted({5, 7}), 1);  // 7 hangs under 6, not under 5
}

TEST(DraftTreeTest, RefusesAChildBeforeItsParent) {
  DraftTree tree = Chain({1, 2});
  tree.parents = {2, 0};
  EXPECT_EQ(tree.Validate().code(), absl::StatusCode::kInternal);
  tree.parents = {0};
  EXPECT_EQ(tree.Validate().code(), absl::StatusCode::kInternal);
}

TEST(AcceptanceRecordTest, SumsWhatWasJudged) {
  AcceptanceRecord record;
  EXPECT_EQ(record.MeanAcceptLength(), 0.0);
  EXPECT_EQ(record.AcceptanceRate(), 0.0);
  record.Judge(4, 0);
  record.Judge(4, 3);
  record.Judge(2, 0);
  EXPECT_THAT(record.acceptance_histogram, ElementsAre(2, 0, 0, 1));
  EXPECT_EQ(record.accepted_draft_tokens, 3);
  EXPECT_EQ(record.draft_tokens, 10);
  EXPECT_EQ(record.spec_tokens, 4);
  EXPECT_DOUBLE_EQ(record.MeanAcceptLength(), 2.0);  // 1 + 3 / 3: the bonus is counted
  EXPECT_DOUBLE_EQ(record.AcceptanceRate(), 0.3);
}

}  // namespace
}  // namespace aerie
