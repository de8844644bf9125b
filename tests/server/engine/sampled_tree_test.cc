#include "server/engine/sampled_tree.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace aerie {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::SizeIs;

struct ShareCase {
  std::string name;
  std::vector<double> weights;
  int32_t count;
  std::vector<int32_t> shares;
};

class ShareOutTest : public ::testing::TestWithParam<ShareCase> {};

TEST_P(ShareOutTest, GoesByLargestRemainder) {
  EXPECT_EQ(ShareOut(GetParam().weights, GetParam().count), GetParam().shares);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, ShareOutTest,
    ::testing::ValuesIn(std::vector<ShareCase>{
        {"OneTakesAll", {0.3}, 4, {4}},
        {"InProportion", {0.5, 0.25, 0.25}, 4, {2, 1, 1}},
        {"TheLargestRemainderGetsWhatIsLeft", {0.5, 0.3, 0.2}, 4, {2, 1, 1}},
        {"TheUnlikelyGetNothing", {0.9, 0.05, 0.05}, 4, {4, 0, 0}},
        {"EqualRemaindersGoToTheEarlier", {0.25, 0.25, 0.25, 0.25}, 2, {1, 1, 0, 0}},
        {"WeightsNeedNotSumToOne", {3, 1}, 4, {3, 1}},
        {"NoWeightAtAllIsEqualWeight", {0, 0}, 3, {2, 1}},
        {"NothingToShare", {0.5, 0.5}, 0, {0, 0}},
    }),
    [](const auto& test) { return test.param.name; });

SessionOptions Sampled(int32_t top_m, ProposalProbs probs = ProposalProbs::kTopM) {
  SessionOptions options;
  options.temperature = 1.0f;
  options.top_m = top_m;
  options.seed = 77;
  options.probs = probs;
  return options;
}

// What a node drafts: tokens first .. first + 3 with the given probabilities.
RowOutput Output(int32_t first, std::vector<double> probs) {
  RowOutput output;
  for (size_t i = 0; i < probs.size(); ++i) {
    output.top.push_back({first + static_cast<int32_t>(i), static_cast<float>(std::log(probs[i]))});
  }
  return output;
}

// Grows it to its end; every node drafts the same tokens with the same probabilities.
DraftTree Grow(SampledTree tree, const std::vector<double>& probs) {
  tree.Grow(std::vector<RowOutput>{Output(0, probs)});
  while (!tree.done()) {
    tree.Grow(std::vector<RowOutput>(tree.tokens().size(), Output(0, probs)));
  }
  return tree.Tree();
}

std::vector<int32_t> NodesByLevel(const DraftTree& tree) {
  std::vector<int32_t> depths = {0}, levels;
  for (const int32_t parent : tree.parents) {
    depths.push_back(depths[static_cast<size_t>(parent)] + 1);
    levels.resize(std::max(levels.size(), static_cast<size_t>(depths.back())));
    ++levels[static_cast<size_t>(depths.back()) - 1];
  }
  return levels;
}

TEST(SampledTreeTest, GivesEachLevelItsWidthAndLeavesOneForEveryLevelBelow) {
  const std::vector<double> probs = {0.4, 0.3, 0.2, 0.1};
  EXPECT_THAT(NodesByLevel(Grow(SampledTree({3, 4, 12}, Sampled(4), 9), probs)),
              ElementsAre(4, 4, 4));
  EXPECT_THAT(NodesByLevel(Grow(SampledTree({5, 4, 10}, Sampled(4), 9), probs)),
              ElementsAre(4, 3, 1, 1, 1));
  EXPECT_THAT(NodesByLevel(Grow(SampledTree({3, 2, 3}, Sampled(4), 9), probs)),
              ElementsAre(1, 1, 1));
  EXPECT_THAT(NodesByLevel(Grow(SampledTree({4, 1, 4}, Sampled(4), 9), probs)),
              ElementsAre(1, 1, 1, 1));
}

TEST(SampledTreeTest, SharesALevelOutByHowLikelyThePathsToItsParentsAre) {
  for (int64_t position = 0; position < 100; ++position) {
    const DraftTree tree =
        Grow(SampledTree({3, 4, 12}, Sampled(4), position), {0.6, 0.2, 0.15, 0.05});
    // Nodes 1..4, 5..8 and 9..12 are the levels.
    std::vector<double> paths = {1.0};
    for (size_t i = 0; i < 12; ++i) {
      paths.push_back(paths[static_cast<size_t>(tree.parents[i])] *
                      static_cast<double>(tree.chosen_probs[i]));
    }
    for (const int32_t first : {1, 5}) {
      std::vector<int32_t> children;
      for (int32_t node = first; node < first + 4; ++node) {
        children.push_back(
            static_cast<int32_t>(std::count(tree.parents.begin(), tree.parents.end(), node)));
      }
      ASSERT_EQ(children, ShareOut(absl::MakeConstSpan(paths).subspan(first, 4), 4));
    }
  }
}

TEST(SampledTreeTest, DrawsTheChildrenOfANodeWithoutReplacement) {
  for (int64_t position = 0; position < 200; ++position) {
    const DraftTree tree = Grow(SampledTree({2, 3, 6}, Sampled(3), position), {0.5, 0.3, 0.2});
    ASSERT_TRUE(tree.Validate().ok());
    ASSERT_EQ(tree.size(), 6);
    std::map<int32_t, std::vector<int32_t>> children;
    for (size_t i = 0; i < tree.tokens.size(); ++i) {
      children[tree.parents[i]].push_back(tree.tokens[i]);
    }
    for (auto& [parent, tokens] : children) {
      std::sort(tokens.begin(), tokens.end());
      ASSERT_EQ(std::adjacent_find(tokens.begin(), tokens.end()), tokens.end())
          << "under node " << parent;
    }
  }
}

TEST(SampledTreeTest, TellsTheDistributionsAsFarAsTheyWereAskedFor) {
  const std::vector<double> probs = {0.4, 0.3, 0.2, 0.1};
  const GrowthShape shape{2, 3, 6};
  const DraftTree none = Grow(SampledTree(shape, Sampled(3, ProposalProbs::kNone), 9), probs);
  EXPECT_THAT(none.chosen_probs, SizeIs(0));
  EXPECT_THAT(none.distributions, SizeIs(0));
  const DraftTree chosen = Grow(SampledTree(shape, Sampled(3, ProposalProbs::kChosen), 9), probs);
  EXPECT_EQ(chosen.tokens, none.tokens) << "what is told does not change what is drawn";
  EXPECT_THAT(chosen.chosen_probs, SizeIs(6));
  EXPECT_THAT(chosen.distributions, SizeIs(0));
  const DraftTree top_m = Grow(SampledTree(shape, Sampled(3), 9), probs);
  EXPECT_EQ(top_m.chosen_probs, chosen.chosen_probs);
  for (const ProposalDistribution& q : top_m.distributions) {
    // Of four tokens three are drawn from, renormalised.
    EXPECT_THAT(q.tokens, ElementsAre(0, 1, 2));
    EXPECT_THAT(q.probs, ElementsAre(FloatNear(0.4f / 0.9f, 1e-6f), FloatNear(0.3f / 0.9f, 1e-6f),
                                     FloatNear(0.2f / 0.9f, 1e-6f)));
  }
  for (size_t i = 0; i < top_m.tokens.size(); ++i) {
    const auto q = std::find_if(top_m.distributions.begin(), top_m.distributions.end(),
                                [&](const auto& d) { return d.node == top_m.parents[i]; });
    ASSERT_NE(q, top_m.distributions.end()) << "every node with children has one";
    EXPECT_EQ(top_m.chosen_probs[i], q->probs[static_cast<size_t>(top_m.tokens[i])])
        << "of the whole distribution, whatever elder siblings took";
    EXPECT_FLOAT_EQ(top_m.log_probs[i],
                    static_cast<float>(std::log(probs[static_cast<size_t>(top_m.tokens[i])])))
        << "of the drafter's own, whatever the temperature and top_m";
  }
}

TEST(SampledTreeTest, DrawsLessOftenWhatATemperatureBelowOneMakesLessLikely) {
  SessionOptions cold = Sampled(2);
  cold.temperature = 0.25f;
  int hot_firsts = 0, cold_firsts = 0;
  for (int64_t position = 0; position < 2000; ++position) {
    hot_firsts += Grow(SampledTree({1, 1, 1}, Sampled(2), position), {0.6, 0.4}).tokens[0] == 0;
    cold_firsts += Grow(SampledTree({1, 1, 1}, cold, position), {0.6, 0.4}).tokens[0] == 0;
  }
  EXPECT_NEAR(hot_firsts / 2000.0, 0.6, 0.05);
  EXPECT_NEAR(cold_firsts / 2000.0, std::pow(0.6, 4) / (std::pow(0.6, 4) + std::pow(0.4, 4)), 0.05);
}

TEST(SampledTreeTest, DrawsWhatHasAnyProbabilityWhenThatIsLessThanAsked) {
  SessionOptions icy = Sampled(3);
  icy.temperature = 1e-4f;
  const DraftTree tree = Grow(SampledTree({2, 3, 6}, icy, 5), {0.6, 0.3, 0.1});
  EXPECT_THAT(tree.tokens, ElementsAre(0, 0)) << "the others' q is 0";
  EXPECT_THAT(tree.chosen_probs, Each(1.0f));
  EXPECT_THAT(tree.distributions[0].tokens, ElementsAre(0));
}

TEST(SampledTreeTest, DrawsByItsSeedItsPositionAndTheNode) {
  const auto grow = [](uint64_t seed, int64_t position) {
    SessionOptions options = Sampled(4);
    options.seed = seed;
    return Grow(SampledTree({3, 2, 6}, options, position), {0.25, 0.25, 0.25, 0.25}).tokens;
  };
  EXPECT_EQ(grow(1, 10), grow(1, 10));
  int same_seed = 0, same_position = 0;
  for (int64_t i = 0; i < 50; ++i) {
    same_seed += grow(1, i) == grow(1, i + 1);
    same_position += grow(static_cast<uint64_t>(i), 5) == grow(static_cast<uint64_t>(i) + 1, 5);
  }
  EXPECT_LT(same_seed, 5);
  EXPECT_LT(same_position, 5);
}

}  // namespace
}  // namespace aerie
