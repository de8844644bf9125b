#include "server/engine/tree_search.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace aerie {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Path = std::vector<int32_t>;  // tokens from the root down

// A drafter as a table: what follows each path, best first.
using Head = std::map<Path, std::vector<ScoredToken>>;

RowOutput OutputAt(const Head& head, const Path& path) { return {.top = head.at(path)}; }

// Drives a search over `head` to its end and checks what it asks for on the way.
DraftTree Search(const Head& head, const GrowthShape& shape) {
  TreeSearch search(shape);
  std::vector<Path> rows;  // of each draft row
  search.Grow(std::vector<RowOutput>{OutputAt(head, {})});
  while (!search.done()) {
    std::vector<RowOutput> outputs;
    const size_t before = rows.size();
    for (size_t i = 0; i < search.tokens().size(); ++i) {
      const int32_t parent = search.parents()[i];
      EXPECT_LT(parent, static_cast<int32_t>(before)) << "a parent comes with an earlier pass";
      Path path = parent < 0 ? Path() : rows[static_cast<size_t>(parent)];
      path.push_back(search.tokens()[i]);
      outputs.push_back(OutputAt(head, path));
      rows.push_back(std::move(path));
    }
    search.Grow(outputs);
  }
  EXPECT_LE(static_cast<int64_t>(rows.size()), shape.DraftRows());
  return search.Tree();
}

// Letters are tokens: worked out by hand after the published search. The root's children are A and
// B; C and D hang under A, E and F under B, and each of these has G and H.
constexpr int32_t A = 1, B = 2, C = 3, D = 4, E = 5, F = 6, G = 7, H = 8;

Head FixedHead() {
  return {{{}, {{A, -0.25f}, {B, -2.5f}}},       {{A}, {{C, -0.25f}, {D, -2.0f}}},
          {{B}, {{E, -0.125f}, {F, -3.5f}}},     {{A, C}, {{G, -1.0f}, {H, -4.0f}}},
          {{A, D}, {{G, -0.125f}, {H, -0.25f}}}, {{B, E}, {{G, -0.125f}, {H, -0.125f}}},
          {{B, F}, {{G, -0.125f}, {H, -0.125f}}}};
}

struct FixedCase {
  std::string name;
  GrowthShape shape;
  std::vector<int32_t> tokens;
  std::vector<int32_t> parents;
};

class FixedSearchTest : public ::testing::TestWithParam<FixedCase> {};

TEST_P(FixedSearchTest, ProposesTheBestOfAllCandidatesInTheirOrder) {
  const FixedCase& c = GetParam();
  const DraftTree tree = Search(FixedHead(), c.shape);
  EXPECT_EQ(tree.tokens, c.tokens);
  EXPECT_EQ(tree.parents, c.parents);
  EXPECT_TRUE(tree.Validate().ok()) << tree.Validate();
}

INSTANTIATE_TEST_SUITE_P(
    Cases, FixedSearchTest,
    ::testing::ValuesIn(std::vector<FixedCase>{
        // Scores: A -0.25, B -2.5, C -0.5, D -2.25, E -2.625, F -6.
        {"OneLevelIsTheRootsBest", {1, 2, 2}, {A, B}, {0, 0}},
        {"TheRerankLeavesOutWhatWasExpanded", {2, 2, 3}, {A, C, D}, {0, 1, 1}},
        {"NodesKeepTheOrderOfTheirLevels", {2, 2, 4}, {A, B, C, D}, {0, 0, 1, 1}},
        {"AChildOfTheSecondBest", {2, 2, 5}, {A, B, C, D, E}, {0, 0, 1, 1, 2}},
        {"EverythingThatWasSeen", {2, 2, 6}, {A, B, C, D, E, F}, {0, 0, 1, 1, 2, 2}},
        // The second level expands C and D, both under A; under C: G -1.5, H -4.5; under D: G
        // -2.375, H -2.5.
        {"OnlyTheBestOfALevelAreExpanded", {3, 2, 5}, {A, C, D, G, G}, {0, 1, 1, 2, 3}},
        // B and H under D are equal; the earlier candidate is the better one.
        {"EqualScoresGoToTheEarlierCandidate", {3, 2, 6}, {A, B, C, D, G, G}, {0, 0, 1, 1, 3, 4}},
        {"TheLaterOfEqualsComesNext", {3, 2, 7}, {A, B, C, D, G, G, H}, {0, 0, 1, 1, 3, 4, 4}},
        {"AChainTakesTheBestOfEachStep", {3, 1, 3}, {A, C, G}, {0, 1, 2}},
        {"AChainOfOne", {1, 1, 1}, {A}, {0}},
    }),
    [](const auto& test) { return test.param.name; });

TEST(TreeSearchTest, TellsTheLogProbabilityOfEachTokenGivenItsParent) {
  EXPECT_THAT(Search(FixedHead(), {2, 2, 3}).log_probs, ElementsAre(-0.25f, -0.25f, -2.0f));
}

TEST(TreeSearchTest, AsksForTheRowsOfTheFrontierWithTheRowsOfTheirParents) {
  TreeSearch search({3, 2, 7});
  EXPECT_THAT(search.tokens(), IsEmpty()) << "the root's row is an extend row";
  EXPECT_FALSE(search.done());
  const Head head = FixedHead();
  search.Grow(std::vector<RowOutput>{OutputAt(head, {})});
  EXPECT_THAT(search.tokens(), ElementsAre(A, B));
  EXPECT_THAT(search.parents(), ElementsAre(-1, -1));
  search.Grow(std::vector<RowOutput>{OutputAt(head, {A}), OutputAt(head, {B})});
  EXPECT_THAT(search.tokens(), ElementsAre(C, D));
  EXPECT_THAT(search.parents(), ElementsAre(0, 0));
  EXPECT_FALSE(search.done());
  search.Grow(std::vector<RowOutput>{OutputAt(head, {A, C}), OutputAt(head, {A, D})});
  EXPECT_TRUE(search.done());
  EXPECT_EQ(search.level(), 3);
}

TEST(TreeSearchTest, GivesWhatIsThereWhenItIsCutBetweenLevels) {
  TreeSearch search({3, 2, 5});
  search.Grow(std::vector<RowOutput>{OutputAt(FixedHead(), {})});
  EXPECT_THAT(search.Tree().tokens, ElementsAre(A, B));
}

TEST(TreeSearchTest, KeepsParentsBeforeChildrenWhenRoundingLeavesAPositiveLogProbability) {
  const Head head = {{{}, {{A, 0.0f}, {B, -1.0f}}},
                     {{A}, {{C, -0.5f}, {D, -20.0f}}},
                     {{B}, {{E, 2e-7f}, {F, -20.0f}}}};
  EXPECT_THAT(Search(head, {2, 2, 3}).tokens, ElementsAre(A, B, C));
  const DraftTree tree = Search(head, {2, 2, 4});
  EXPECT_THAT(tree.tokens, ElementsAre(A, B, C, E));
  EXPECT_THAT(tree.parents, ElementsAre(0, 0, 1, 2));
  EXPECT_THAT(tree.log_probs, ElementsAre(0.0f, -1.0f, -0.5f, 2e-7f)) << "it is told as it was";
}

TEST(GrowthShapeTest, IsAsDeepAsTheCallsKAllows) {
  SessionOptions options;
  GrowthShape shape = ShapeFor(options, 4);
  EXPECT_THAT((std::vector<int32_t>{shape.depth, shape.top_k, shape.total}), ElementsAre(4, 1, 4));
  EXPECT_EQ(shape.DraftRows(), 3);
  options.tree = TreeShape{.depth = 5, .top_k = 4, .total_tokens = 16};
  shape = ShapeFor(options, 40);
  EXPECT_THAT((std::vector<int32_t>{shape.depth, shape.top_k, shape.total}), ElementsAre(5, 4, 16));
  EXPECT_EQ(shape.DraftRows(), 16);
  shape = ShapeFor(options, 3);
  EXPECT_THAT((std::vector<int32_t>{shape.depth, shape.top_k, shape.total}), ElementsAre(3, 4, 3));
  EXPECT_EQ(shape.DraftRows(), 2 + 1) << "what cannot come into the tree is not computed";
}

TEST(GrowthShapeTest, DepthOfATreeIsThatOfItsLongestPath) {
  DraftTree tree;
  EXPECT_EQ(DepthOf(tree), 0);
  tree.tokens = {1, 2, 3, 4};
  tree.parents = {0, 0, 2, 1};
  tree.log_probs = {-1, -1, -1, -1};
  EXPECT_EQ(DepthOf(tree), 2);
}

// A head with everything it can be asked for: `top_k` children everywhere, down to `depth`. Scores
// are few, so that equal ones abound.
Head RandomHead(const GrowthShape& shape, std::mt19937_64* random) {
  Head head;
  std::vector<Path> level = {{}};
  for (int32_t depth = 0; depth < shape.depth; ++depth) {
    std::vector<Path> next;
    for (const Path& path : level) {
      std::vector<float> log_probs;
      for (int32_t i = 0; i < shape.top_k; ++i) {
        log_probs.push_back(-0.25f * static_cast<float>((*random)() % 9));
      }
      std::sort(log_probs.rbegin(), log_probs.rend());
      const auto first = static_cast<int32_t>((*random)() % 50);
      for (int32_t i = 0; i < shape.top_k; ++i) {
        head[path].push_back({first + 3 * i, log_probs[static_cast<size_t>(i)]});
        next.push_back(path);
        next.back().push_back(first + 3 * i);
      }
    }
    level = std::move(next);
  }
  return head;
}

// The search by its definition, over every path that there is: a path is a candidate when its
// parent is one of the top_k best candidates of its level.
struct BruteForce {
  struct Candidate {
    Path path;
    double score = 0;
    float log_prob = 0;
  };

  DraftTree Run(const Head& head, const GrowthShape& shape) {
    std::vector<Candidate> all;
    std::vector<Candidate> expanded = {{}};
    for (int32_t level = 1; level <= shape.depth; ++level) {
      std::vector<Candidate> candidates;
      for (const Candidate& parent : expanded) {
        for (const ScoredToken& token : head.at(parent.path)) {
          Candidate child{parent.path, parent.score + token.log_prob, token.log_prob};
          child.path.push_back(token.token);
          candidates.push_back(child);
        }
      }
      all.insert(all.end(), candidates.begin(), candidates.end());
      expanded = BestOf(candidates, shape.top_k);
    }
    const std::vector<Candidate> best = BestOf(all, shape.total);
    DraftTree tree;
    std::map<Path, int32_t> numbers = {{{}, 0}};
    for (const Candidate& candidate : all) {
      const bool chosen = std::any_of(best.begin(), best.end(),
                                      [&](const Candidate& b) { return b.path == candidate.path; });
      if (!chosen) continue;
      const Path parent(candidate.path.begin(), candidate.path.end() - 1);
      tree.tokens.push_back(candidate.path.back());
      tree.parents.push_back(numbers.at(parent));
      tree.log_probs.push_back(candidate.log_prob);
      numbers[candidate.path] = tree.size();
    }
    return tree;
  }

  static std::vector<Candidate> BestOf(std::vector<Candidate> candidates, int32_t count) {
    std::vector<Candidate> best;
    while (static_cast<int32_t>(best.size()) < count && !candidates.empty()) {
      auto place = candidates.begin();  // the first of the highest
      for (auto it = candidates.begin(); it != candidates.end(); ++it) {
        if (it->score > place->score) place = it;
      }
      best.push_back(*place);
      candidates.erase(place);
    }
    return best;
  }
};

TEST(TreeSearchPropertyTest, FindsWhatABruteForceSearchFinds) {
  std::mt19937_64 random(20);
  const auto draw = [&](int32_t low, int32_t high) {
    return std::uniform_int_distribution<int32_t>(low, high)(random);
  };
  for (int i = 0; i < 4000; ++i) {
    GrowthShape shape{.depth = draw(1, 5), .top_k = draw(1, i % 10 == 0 ? 5 : 3), .total = 0};
    if (shape.depth == 5) shape.top_k = std::min(shape.top_k, 3);
    const int32_t most = shape.top_k + (shape.depth - 1) * shape.top_k * shape.top_k;
    shape.total = draw(shape.depth, most);
    const Head head = RandomHead(shape, &random);
    const DraftTree tree = Search(head, shape);
    ASSERT_EQ(tree, BruteForce().Run(head, shape))
        << "case " << i << ": " << shape.depth << ", " << shape.top_k << ", " << shape.total;
    ASSERT_TRUE(tree.Validate().ok());
    ASSERT_EQ(tree.size(), shape.total);
  }
}

}  // namespace
}  // namespace aerie
