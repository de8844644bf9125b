// Which rows a row of a pass sees, against the definition in the seam, row by row.
#include "server/model/pass_rows.h"

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace aerie {
namespace {

constexpr int32_t kPageRows = 4;

std::set<int64_t> RowsOf(const SeenRows& seen) {
  std::set<int64_t> rows;
  size_t said = 0;
  for (const RowRange& range : {seen.early, seen.late}) {
    for (int64_t row = range.begin; row < range.end; ++row, ++said) rows.insert(row);
  }
  for (int64_t i = 0; i < seen.singles; ++i, ++said) rows.insert(seen.single[i]);
  EXPECT_EQ(said, rows.size()) << "a row that is said twice counts twice";
  return rows;
}

VisibleRows RandomVisible(std::mt19937& random, int64_t start) {
  VisibleRows visible{.start = start};
  if (random() % 4 != 0) {
    visible.window = 1 + random() % 30;
    visible.sink = random() % 8;
  }
  return visible;
}

HiddenRows Rows(const std::vector<float>& numbers) {
  return *HiddenRows::Create(
      DType::kF32, static_cast<int64_t>(numbers.size()), 1,
      {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)});
}

TEST(PassRowsTest, AnExtendRowSeesTheVisibleRowsUpToItself) {
  std::mt19937 random(1);
  const RoundSlots slots(4);
  for (int trial = 0; trial < 300; ++trial) {
    const int64_t start = trial % 3 == 0 ? random() % 50 : 0;
    const VisibleRows visible = RandomVisible(random, start);
    const int64_t length = start + random() % 40;
    const int64_t count = 1 + random() % 20;
    const std::vector<int32_t> tokens(count, 7);
    const std::vector<float> numbers(count);
    const std::vector<PageId> pages((length + count) / kPageRows + 1, 3);
    const StepSequence part{.pages = pages,
                            .length = length,
                            .visible = visible,
                            .tokens = tokens,
                            .aux = Rows(numbers)};
    const PassRows rows({&part, 1}, slots, kPageRows);
    ASSERT_EQ(rows.count(), count);
    for (int64_t i = 0; i < count; ++i) {
      EXPECT_EQ(rows.positions()[i], length + i);
      EXPECT_EQ(rows.lengths()[i], length + count);
      std::set<int64_t> expected;
      for (int64_t row = 0; row < length + count; ++row) {
        if (visible.Sees(length + i, row)) expected.insert(row);
      }
      EXPECT_EQ(RowsOf(rows.seen()[i]), expected)
          << "row " << length + i << ", start " << visible.start << ", sink " << visible.sink
          << ", window " << visible.window;
    }
  }
}

TEST(PassRowsTest, ADraftRowSeesVisibleRowsAndItsAncestors) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 300; ++trial) {
    const int64_t start = trial % 3 == 0 ? random() % 50 : 0;
    const VisibleRows visible = RandomVisible(random, start);
    const int64_t length = start + 1 + random() % 40;
    RoundSlots slots(4);
    const SlotId slot = trial % 5;
    const float state = 0.0f;
    slots.Reserve(slot, 1);
    slots.BeginAnew(slot, &state);
    std::vector<int32_t> parent_of;
    const auto old = static_cast<int32_t>(random() % 20);
    for (int32_t i = 0; i < old; ++i) {
      parent_of.push_back(static_cast<int32_t>(random() % (i + 1)) - 1);
      slots.Reserve(slot, 1);
      slots.Append(slot, parent_of.back(), &state);
    }
    std::vector<int32_t> parents;
    for (int i = 0; i < 5; ++i) parents.push_back(static_cast<int32_t>(random() % (old + 1)) - 1);
    const std::vector<int32_t> tokens(5, 7);
    const std::vector<PageId> pages((length + old + 5) / kPageRows + 1, 3);
    const StepSequence part{.slot = slot,
                            .pages = pages,
                            .length = length,
                            .visible = visible,
                            .tokens = tokens,
                            .parents = parents};
    const PassRows rows({&part, 1}, slots, kPageRows);
    for (int32_t i = 0; i < 5; ++i) {
      std::set<int64_t> expected = {length + old + i};
      int64_t depth = 1;
      for (int32_t node = parents[i]; node >= 0; node = parent_of[node], ++depth)
        expected.insert(length + node);
      EXPECT_EQ(rows.positions()[i], length - 1 + depth);
      EXPECT_EQ(rows.lengths()[i], length + depth);
      for (int64_t row = 0; row < length; ++row) {
        if (visible.Sees(length - 1 + depth, row)) expected.insert(row);
      }
      EXPECT_EQ(RowsOf(rows.seen()[i]), expected) << "draft row " << old + i;
    }
  }
}

TEST(PassRowsTest, ExtendRowsComeFirstAndWantedOnesInOrder) {
  RoundSlots slots(4);
  const float state = 0.0f;
  slots.Reserve(2, 1);
  slots.BeginAnew(2, &state);
  const std::vector<float> numbers(3);
  const std::vector<int32_t> tokens = {1, 2, 3}, parents = {-1, -1, -1};
  const std::vector<PageId> pages(4, 0);
  const StepSequence drafts{.slot = 2,
                            .pages = pages,
                            .length = 5,
                            .tokens = tokens,
                            .parents = parents,
                            .outputs = Outputs::kEvery};
  const StepSequence last{
      .slot = 0, .pages = pages, .tokens = tokens, .aux = Rows(numbers), .outputs = Outputs::kLast};
  const StepSequence none{.slot = 1, .pages = pages, .tokens = tokens, .aux = Rows(numbers)};
  const std::vector<StepSequence> batch = {drafts, last, none};
  const PassRows rows(batch, slots, kPageRows);
  std::vector<size_t> parts;
  for (const NetSequence& sequence : rows.sequences()) parts.push_back(sequence.part);
  EXPECT_THAT(parts, testing::ElementsAre(1, 2, 0));
  EXPECT_THAT(rows.wanted(), testing::ElementsAre(2, 6, 7, 8));
  EXPECT_EQ(rows.sequences()[2].first_row, 5);
}

TEST(PassRowsDeathTest, RowsThatAreSeenMustLieInAPage) {
  const RoundSlots slots(4);
  const std::vector<float> numbers(1);
  const int32_t token = 1;
  std::vector<PageId> pages = {1, 2, 3, 4};
  StepSequence part{.pages = pages, .length = 14, .tokens = {&token, 1}, .aux = Rows(numbers)};
  part.visible = {.sink = 2, .window = 3};  // rows 0, 1, 12, 13 and 14
  pages[1] = pages[2] = kNoPage;
  EXPECT_EQ(PassRows({&part, 1}, slots, kPageRows).count(), 1);
  pages[0] = kNoPage;
  EXPECT_DEATH(PassRows({&part, 1}, slots, kPageRows), "page 0 holds rows that are seen");
  pages = {1, 2, 3, kNoPage};
  EXPECT_DEATH(PassRows({&part, 1}, slots, kPageRows), "page 3 holds rows that are seen");
  part.pages = {pages.data(), 3};
  EXPECT_DEATH(PassRows({&part, 1}, slots, kPageRows), "row 14 lies behind 3 pages");
}

}  // namespace
}  // namespace aerie
