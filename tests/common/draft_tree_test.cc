#include "common/draft_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "common/acceptance_record.h"

namespace aerie {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

// root -> 5, 6; 6 -> 7, 8; 7 -> 9. Node numbers are no depth-first order.
DraftTree SmallTree() {
  DraftTree tree;
  tree.tokens = {5, 6, 7, 8, 9};
  tree.parents = {0, 0, 2, 2, 3};
  tree.log_probs = {-1, -1, -1, -1, -1};
  return tree;
}

TEST(DraftTreeTest, TellsHowDeepEachTokenIs) {
  EXPECT_THAT(SmallTree().Depths(), ElementsAre(1, 1, 2, 2, 3));
  EXPECT_EQ(SmallTree().MaxDepth(), 3);
  EXPECT_THAT(DraftTree().Depths(), IsEmpty());
  EXPECT_EQ(DraftTree().MaxDepth(), 0);
}

TEST(DraftTreeTest, PacksTheAncestorsOfEachNodeLowestBitFirst) {
  EXPECT_EQ(SmallTree().AncestorMask(), std::string("\x01"    // 0: itself
                                                    "\x03"    // 1: 0, 1
                                                    "\x05"    // 2: 0, 2
                                                    "\x0d"    // 3: 0, 2, 3
                                                    "\x15"    // 4: 0, 2, 4
                                                    "\x2d"))  // 5: 0, 2, 3, 5
      << "bits are columns";
  // The eighth token is node 8, which begins the second byte of a row.
  const std::string wide = Chain({1, 2, 3, 4, 5, 6, 7, 8}).AncestorMask();
  ASSERT_EQ(wide.size(), 9u * 2u);
  EXPECT_EQ(wide.substr(14, 4), std::string("\xff\x00\xff\x01", 4));
  EXPECT_EQ(DraftTree().AncestorMask(), "\x01");
}

TEST(DraftTreeTest, LinksEachNodeToItsFirstChildAndNextSibling) {
  const TreeLinks links = SmallTree().Links();
  EXPECT_THAT(links.first_child, ElementsAre(1, -1, 3, 5, -1, -1));
  EXPECT_THAT(links.next_sibling, ElementsAre(-1, 2, -1, 4, -1, -1));
  EXPECT_THAT(DraftTree().Links().first_child, ElementsAre(-1));
}

DraftTree RandomTree(std::mt19937& random) {
  DraftTree tree;
  const int32_t size = std::uniform_int_distribution<int32_t>(0, 40)(random);
  for (int32_t i = 0; i < size; ++i) {
    tree.parents.push_back(std::uniform_int_distribution<int32_t>(0, i)(random));
    tree.tokens.push_back(i);
    tree.log_probs.push_back(-1.0f);
  }
  return tree;
}

TEST(DraftTreeTest, MaskLinksAndDepthsAreWhatAWalkAlongTheParentsFinds) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    const DraftTree tree = RandomTree(random);
    ASSERT_TRUE(tree.Validate().ok());
    const int32_t nodes = tree.size() + 1;
    const std::string mask = tree.AncestorMask();
    const TreeLinks links = tree.Links();
    const std::vector<int32_t> depths = tree.Depths();
    const auto row_bytes = static_cast<size_t>((nodes + 7) / 8);
    ASSERT_EQ(mask.size(), row_bytes * static_cast<size_t>(nodes));
    int32_t deepest = 0;
    for (int32_t node = 0; node < nodes; ++node) {
      std::vector<bool> sees(row_bytes * 8, false);
      int32_t depth = 0;
      for (int32_t at = node;; at = tree.parents[static_cast<size_t>(at) - 1], ++depth) {
        sees[static_cast<size_t>(at)] = true;
        if (at == 0) break;
      }
      deepest = std::max(deepest, depth);
      if (node > 0) {
        EXPECT_EQ(depths[static_cast<size_t>(node) - 1], depth);
      }
      for (size_t bit = 0; bit < sees.size(); ++bit) {
        const auto byte =
            static_cast<unsigned char>(mask[static_cast<size_t>(node) * row_bytes + bit / 8]);
        EXPECT_EQ((byte >> bit % 8 & 1) == 1, sees[bit]) << node << " sees " << bit;
      }
      std::vector<int32_t> children, linked;
      for (int32_t child = node + 1; child < nodes; ++child) {
        if (tree.parents[static_cast<size_t>(child) - 1] == node) children.push_back(child);
      }
      for (int32_t child = links.first_child[static_cast<size_t>(node)]; child != -1;
           child = links.next_sibling[static_cast<size_t>(child)]) {
        linked.push_back(child);
      }
      EXPECT_EQ(linked, children);
    }
    EXPECT_EQ(tree.MaxDepth(), deepest);
  }
}

// SmallTree() as a sampled one that tells all.
DraftTree SampledTree() {
  DraftTree tree = SmallTree();
  tree.chosen_probs = {0.5f, 0.25f, 0.7f, 0.3f, 1.0f};
  tree.distributions = {
      {0, {5, 4, 6}, {0.5f, 0.25f, 0.25f}}, {2, {7, 8}, {0.7f, 0.3f}}, {3, {9}, {1.0f}}};
  return tree;
}

struct BadTreeCase {
  std::string name;
  void (*spoil)(DraftTree*);
  std::string message;
};

class BadTreeTest : public ::testing::TestWithParam<BadTreeCase> {};

TEST_P(BadTreeTest, IsRefused) {
  DraftTree tree = SampledTree();
  ASSERT_TRUE(tree.Validate().ok()) << tree.Validate();
  GetParam().spoil(&tree);
  const absl::Status status = tree.Validate();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
  EXPECT_THAT(std::string(status.message()), HasSubstr("; expected "));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BadTreeTest,
    ::testing::ValuesIn(std::vector<BadTreeCase>{
        {"LogProbIsNaN", [](DraftTree* d) { d->log_probs[1] = std::nanf(""); },
         "node 2 of a draft tree has a log-probability that is no number"},
        {"OneChosenProbTooFew", [](DraftTree* d) { d->chosen_probs.pop_back(); },
         "5 tokens and 4 chosen probabilities"},
        {"ChosenProbIsNaN", [](DraftTree* d) { d->chosen_probs[1] = std::nanf(""); }, "node 2"},
        {"ChosenProbIsZero", [](DraftTree* d) { d->chosen_probs[0] = 0.0f; }, "node 1"},
        {"ChosenProbAboveOne", [](DraftTree* d) { d->chosen_probs[4] = 1.5f; }, "node 5"},
        {"NoDistributionAtAParent", [](DraftTree* d) { d->distributions.pop_back(); },
         "token 9 of a draft tree is not once in a distribution at its parent, node 3"},
        {"DistributionAtALeaf",
         [](DraftTree* d) {
           d->distributions.push_back({5, {1}, {1.0f}});
         },
         "node 5 of a draft tree has a distribution and no children"},
        {"DistributionsOutOfOrder",
         [](DraftTree* d) { std::swap(d->distributions[0], d->distributions[1]); },
         "a distribution at node 0 after that of 2"},
        {"DistributionOfNoNode", [](DraftTree* d) { d->distributions[2].node = 6; },
         "a distribution at node 6"},
        {"DistributionBelowTheRoot", [](DraftTree* d) { d->distributions[0].node = -1; },
         "a distribution at node -1"},
        {"ListsOfUnequalLength", [](DraftTree* d) { d->distributions[1].probs.pop_back(); },
         "node 2 of a draft tree has 2 tokens and 1 probabilities"},
        {"EmptyDistribution",
         [](DraftTree* d) {
           d->distributions[1] = {2, {}, {}};
         },
         "node 2 of a draft tree has 0 tokens"},
        {"ProbIsNaN", [](DraftTree* d) { d->distributions[0].probs[2] = std::nanf(""); },
         "gives token 6 the probability nan"},
        {"ProbIsZero", [](DraftTree* d) { d->distributions[0].probs[2] = 0.0f; },
         "gives token 6 the probability 0"},
        {"Rises",
         [](DraftTree* d) {
           d->distributions[0].probs = {0.25f, 0.5f, 0.25f};
         },
         "rises at token 4"},
        {"SumsToLess",
         [](DraftTree* d) {
           d->distributions[0].probs = {0.5f, 0.25f, 0.125f};
         },
         "sums to 0.875"},
        {"LacksAChild", [](DraftTree* d) { d->distributions[1].tokens[1] = 3; },
         "token 8 of a draft tree is not once"},
        {"HasAChildTwice",
         [](DraftTree* d) {
           d->distributions[0] = {0, {5, 6, 6}, {0.5f, 0.25f, 0.25f}};
         },
         "token 6 of a draft tree is not once"},
    }),
    [](const auto& test) { return test.param.name; });

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
