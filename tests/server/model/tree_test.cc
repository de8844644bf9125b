// Trees: the scores behind a node must be those of a chain that drafts the node's own path and
// nothing else, whatever branches stand beside it and however the rows lie in pages.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/model/demo_head.h"
#include "tests/server/model/tapped.h"
#include "tests/server/model/variant_heads.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

// Products of other shapes add in another order; a row too many or too few is off by more than
// 1e-2.
void ExpectClose(const Scores& actual, const Scores& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  float worst = 0.0f;
  for (size_t i = 0; i < actual.size(); ++i) {
    const float difference = std::abs(actual[i] - expected[i]);
    if (std::isnan(difference)) worst = std::numeric_limits<float>::infinity();
    worst = std::max(worst, difference);
  }
  EXPECT_TRUE(worst <= 1e-4f) << worst;
}

struct Tree {
  std::vector<int32_t> tokens, parents;  // by draft row; -1: the root
  std::vector<int32_t> depths;
};

// `levels` of up to `width` nodes; parents are any of the level before.
Tree RandomTree(std::mt19937& random, int32_t levels, int32_t width, int32_t vocab) {
  Tree tree;
  std::vector<int32_t> level = {-1};
  for (int32_t depth = 1; depth <= levels; ++depth) {
    std::vector<int32_t> next;
    const auto nodes = static_cast<int32_t>(1 + random() % width);
    for (int32_t i = 0; i < nodes; ++i) {
      next.push_back(static_cast<int32_t>(tree.tokens.size()));
      tree.tokens.push_back(static_cast<int32_t>(random() % vocab));
      tree.parents.push_back(level[random() % level.size()]);
      tree.depths.push_back(depth);
    }
    level = next;
  }
  return tree;
}

// The scores behind every node, drafted level by level behind the rows of `slot`.
std::vector<Scores> DraftTreeOf(DraftModel& model, OpenedSlot& slot, const Tree& tree) {
  Tapped tap(model);
  for (size_t first = 0; first < tree.tokens.size();) {
    size_t end = first;
    while (end < tree.tokens.size() && tree.depths[end] == tree.depths[first]) ++end;
    const StepSequence part =
        slot.DraftRows({tree.tokens.begin() + first, tree.tokens.begin() + end},
                       {tree.parents.begin() + first, tree.parents.begin() + end});
    EXPECT_THAT(model.Step({&part, 1}, 1), IsOk());
    first = end;
  }
  return tap.Take();
}

// The scores behind the last of `tokens`, drafted as a chain behind the rows of `slot`.
Scores DraftPath(DraftModel& model, OpenedSlot& slot, const std::vector<int32_t>& tokens) {
  Tapped tap(model);
  for (const int32_t token : tokens) slot.Draft(token);
  return tap.Take().back();
}

std::vector<int32_t> PathTo(const Tree& tree, int32_t node) {
  std::vector<int32_t> tokens;
  for (; node >= 0; node = tree.parents[node]) tokens.push_back(tree.tokens[node]);
  std::reverse(tokens.begin(), tokens.end());
  return tokens;
}

// Behind rows 0 .. rows - 1 of `sequence`, given in two pieces.
void ExpectTreeEqualsChains(DraftModel& model, const RecordedSequence& sequence, int64_t rows,
                            const Tree& tree, VisibleRows visible = {}) {
  OpenedSlot with_tree(model);
  with_tree.StartAt(visible.start);
  with_tree.visible() = visible;
  const int64_t own = rows - visible.start;
  with_tree.Extend(sequence, own - 1, false);
  with_tree.Extend(sequence, 1, true);
  const std::vector<Scores> scores = DraftTreeOf(model, with_tree, tree);
  ASSERT_EQ(scores.size(), tree.tokens.size());
  OpenedSlot chain(model);
  chain.StartAt(visible.start);
  chain.visible() = visible;
  chain.Extend(sequence, own - 1, false);
  for (size_t node = 0; node < tree.tokens.size(); ++node) {
    SCOPED_TRACE(node);
    chain.Truncate(rows - 1);
    chain.Extend(sequence, 1, true);
    ExpectClose(scores[node], DraftPath(model, chain, PathTo(tree, static_cast<int32_t>(node))));
  }
}

TEST(TreeTest, TheDemosNodesScoreAsChainsOfTheirPaths) {
  std::mt19937 random(11);
  for (const int64_t rows : {2, 37, 90}) {
    SCOPED_TRACE(rows);
    ExpectTreeEqualsChains(SharedDemo(), Recording()[rows % 7], rows,
                           RandomTree(random, 5, 4, SharedDemo().spec().vocab_size));
  }
}

TEST(TreeTest, AWindowMovesDownTheTreeWithItsNodes) {
  std::mt19937 random(12);
  const Tree tree = RandomTree(random, 5, 4, SharedDemo().spec().vocab_size);
  ExpectTreeEqualsChains(SharedDemo(), Recording()[2], 90, tree, {.sink = 3, .window = 20});
  ExpectTreeEqualsChains(SharedDemo(), Recording()[2], 90, tree, {.start = 33, .window = 2});
}

class VariantTreeTest : public testing::TestWithParam<HeadKind> {};

TEST_P(VariantTreeTest, NodesScoreAsChainsOfTheirPaths) {
  for (const int32_t page_rows : {1, 5, 64}) {
    SCOPED_TRACE(page_rows);
    const auto model = LoadVariant(GetParam(), page_rows);
    ASSERT_NE(model, nullptr);
    const NoiseRows rows(3, 60);
    std::mt19937 random(page_rows);
    for (const int64_t count : {2, 9, 41}) {
      SCOPED_TRACE(count);
      const Tree tree = RandomTree(random, 4, 6, model->spec().vocab_size);
      ExpectTreeEqualsChains(*model, rows.sequence, count, tree);
      ExpectTreeEqualsChains(*model, rows.sequence, count, tree, {.sink = 1, .window = 7});
    }
    ExpectTreeEqualsChains(*model, rows.sequence, 60, RandomTree(random, 4, 6, 40),
                           {.start = 23, .sink = 4, .window = 11});
  }
}

// Both trees and a prompt in every pass, each as if it were alone.
TEST_P(VariantTreeTest, TreesOfSeveralSequencesShareAPass) {
  const auto model = LoadVariant(GetParam(), 4);
  ASSERT_NE(model, nullptr);
  const NoiseRows one(1, 40), two(2, 40), three(3, 40);
  std::mt19937 random(5);
  const Tree trees[] = {RandomTree(random, 3, 3, 40), RandomTree(random, 3, 5, 40)};
  const NoiseRows* const rows[] = {&one, &two};
  std::vector<Scores> alone[2];
  for (const size_t i : {0, 1}) {
    OpenedSlot slot(*model);
    slot.Extend(rows[i]->sequence, 20 + static_cast<int64_t>(i), true);
    alone[i] = DraftTreeOf(*model, slot, trees[i]);
  }

  OpenedSlot first(*model), second(*model), prompt(*model);
  first.Extend(one.sequence, 20, true);
  second.Extend(two.sequence, 21, true);
  std::vector<Scores> together[2];
  size_t next[2] = {0, 0};
  for (int32_t depth = 1; depth <= 3; ++depth) {
    std::vector<StepSequence> batch;
    std::vector<size_t> counts;
    for (const size_t i : {0, 1}) {
      const auto& depths = trees[i].depths;
      const size_t begin = next[i];
      next[i] = std::upper_bound(depths.begin(), depths.end(), depth) - depths.begin();
      OpenedSlot& slot = i == 0 ? first : second;
      batch.push_back(
          slot.DraftRows({trees[i].tokens.begin() + begin, trees[i].tokens.begin() + next[i]},
                         {trees[i].parents.begin() + begin, trees[i].parents.begin() + next[i]}));
      counts.push_back(next[i] - begin);
    }
    batch.insert(batch.begin() + 1, prompt.ExtendRows(three.sequence, 7, Outputs::kEvery));
    Tapped tap(*model);
    ASSERT_THAT(model->Step(batch, 1), IsOk());
    prompt.Took(7);
    const std::vector<Scores> scores = tap.Take();
    ASSERT_EQ(scores.size(), counts[0] + 7 + counts[1]);
    together[0].insert(together[0].end(), scores.begin(), scores.begin() + counts[0]);
    together[1].insert(together[1].end(), scores.end() - counts[1], scores.end());
  }
  for (const size_t i : {0, 1}) {
    ASSERT_EQ(together[i].size(), alone[i].size());
    for (size_t node = 0; node < alone[i].size(); ++node)
      ExpectClose(together[i][node], alone[i][node]);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, VariantTreeTest, testing::ValuesIn(HeadKinds()),
                         [](const auto& test) { return test.param.name; });

// A slot that drafts anew forgets the tree before, and so does a released one.
TEST(TreeTest, ExtendRowsBeginTheSlotAnew) {
  const auto model = LoadVariant(HeadKinds()[0], 4);
  const NoiseRows rows(1, 40);
  std::mt19937 random(6);
  const Tree tree = RandomTree(random, 3, 4, 40);
  OpenedSlot fresh(*model);
  fresh.Extend(rows.sequence, 20, true);
  const std::vector<Scores> expected = DraftTreeOf(*model, fresh, tree);
  OpenedSlot slot(*model);
  slot.Extend(rows.sequence, 15, true);
  DraftTreeOf(*model, slot, RandomTree(random, 4, 6, 40));
  slot.Extend(rows.sequence, 5, true);
  const std::vector<Scores> actual = DraftTreeOf(*model, slot, tree);
  for (size_t node = 0; node < expected.size(); ++node) ExpectClose(actual[node], expected[node]);
}

TEST(TreeTest, WantedRowsComeInOrderWithTheirProbes) {
  DraftModel& model = SharedDemo();
  OpenedSlot slot(model);
  StepSequence part = slot.ExtendRows(Recording()[3], 20, Outputs::kEvery);
  std::vector<int32_t> probes(part.tokens.begin() + 1, part.tokens.end());
  probes.push_back(-1);
  part.probes = probes;
  const auto every = model.Step({&part, 1}, model.spec().draft_vocab_size);
  ASSERT_THAT(every, IsOk());
  ASSERT_EQ((*every)[0].rows.size(), 20);
  int inside = 0;
  for (int64_t row = 0; row < 20; ++row) {
    const RowOutput& out = (*every)[0].rows[row];
    ExpectClose({out.top[0].log_prob}, {DraftAlone(model, Recording()[3], row, 1)[0].log_prob});
    const auto found = std::find_if(out.top.begin(), out.top.end(),
                                    [&](const ScoredToken& t) { return t.token == probes[row]; });
    if (found != out.top.end()) {
      ++inside;
      EXPECT_EQ(out.probe_log_prob, found->log_prob);
    } else {
      EXPECT_EQ(out.probe_log_prob, row == 19 ? 0.0f : -std::numeric_limits<float>::infinity());
    }
  }
  EXPECT_GT(inside, 5) << "else the test says nothing";
}

}  // namespace
}  // namespace aerie
