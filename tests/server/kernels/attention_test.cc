// Attention over pages against plain loops in float64, on every level that this machine runs.
#include "server/kernels/attention.h"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/kernels/levels.h"
#include "tests/server/kernels/paged_case.h"

namespace aerie {
namespace {

// float32 scores up to 60 keep about 5e-6 of their value, and so do the weights.
constexpr double kTolerance = 5e-5;
// A weight that is rounded to bfloat16 is off by up to 2^-8 of itself, and values of -2..2 are off
// from their mean by 2 at most, on average.
constexpr double kRoundedTolerance = kTolerance + 0x1p-7;

class AttentionTest : public testing::TestWithParam<LevelAndElement> {
 protected:
  void ExpectRight(PagedCase& c, const std::vector<SeenRows>& seen) {
    const double worst = c.WorstDifference(seen, GetParam().level);
    EXPECT_TRUE(worst <= (Rounds() ? kRoundedTolerance : kTolerance))
        << worst << ": " << seen.size() << " rows of " << c.group() << " queries, " << c.length()
        << " rows in pages of " << c.page_rows();
  }

  bool Rounds() const { return RoundsQueries(GetParam().level, GetParam().element); }
};

TEST_P(AttentionTest, AQuerySeesWhatItIsSaidToSee) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    PagedCase c(seed, 1 + seed * 7 % 300, 1 + seed * 5 % 37, GetParam().element);
    ExpectRight(c, {{.late = {0, c.length()}}});
  }
}

// No weight is rounded then, so that any value which is left out or taken twice shows.
TEST_P(AttentionTest, EqualScoresGiveTheMeanOfTheValues) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    PagedCase c(seed, 1 + seed * 7 % 300, 1 + seed * 5 % 37, GetParam().element);
    std::vector<SeenRows> seen;
    for (uint32_t i = 0; i <= seed % 5; ++i) seen.push_back({.late = {c.length() / 3, c.length()}});
    EXPECT_LE(c.WorstDifference(seen, GetParam().level, 0.0f), 2e-6) << seed;
  }
}

// Row by row one more, as in a prompt: many queries, and a block that ends in the middle of a
// group.
TEST_P(AttentionTest, RowsOfAPromptSeeUpToThemselves) {
  for (uint32_t seed = 0; seed < 12; ++seed) {
    PagedCase c(seed, 20 + seed * 13, 1 + seed * 11 % 70, GetParam().element);
    const int64_t first = c.Below(20);
    std::vector<SeenRows> seen;
    for (int64_t row = first; row < c.length(); ++row) seen.push_back({.late = {0, row + 1}});
    ExpectRight(c, seen);
  }
}

TEST_P(AttentionTest, AWindowKeepsTheBeginningAndTheEndOnly) {
  for (uint32_t seed = 0; seed < 24; ++seed) {
    PagedCase c(seed, 150, 1 + seed * 3 % 40, GetParam().element);
    const int64_t start = c.Below(30), sink = c.Below(6), window = 1 + c.Below(40);
    const int64_t rows = 1 + c.Below(30);
    std::vector<SeenRows> seen;
    for (int64_t row = 150 - rows; row < 150; ++row) {
      const int64_t from = row + 1 - window;
      seen.push_back({.early = {start, start + sink}, .late = {from, row + 1}});
    }
    if (start + sink > 150 - rows + 1 - window) continue;  // they would touch
    ExpectRight(c, seen);
  }
}

TEST_P(AttentionTest, NodesOfATreeSeeTheirAncestorsAlone) {
  for (uint32_t seed = 0; seed < 24; ++seed) {
    PagedCase c(seed, 90, 1 + seed * 3 % 40, GetParam().element);
    const int64_t committed = c.Below(60);
    const int64_t nodes = 1 + c.Below(29);
    std::vector<std::vector<int64_t>> paths;
    for (int64_t node = 0; node < nodes; ++node) {
      paths.emplace_back();
      if (node > 0 && c.Below(4) != 0) paths.back() = paths[c.Below(node)];
      paths.back().push_back(committed + node);
    }
    std::vector<SeenRows> seen;
    for (const auto& path : paths) {
      seen.push_back({.late = {0, committed},
                      .single = path.data(),
                      .singles = static_cast<int64_t>(path.size())});
    }
    ExpectRight(c, seen);
  }
}

// With products of bfloat16 there is one way to compute a query, be it of a prompt or of a step.
TEST_P(AttentionTest, ARoundedQueryGivesTheSameBitsWhateverQueriesComeWithIt) {
  if (!Rounds()) return;
  for (uint32_t seed = 0; seed < 10; ++seed) {
    PagedCase c(seed, 90, 16, GetParam().element);
    const int64_t rows = 1 + c.Below(20);
    std::vector<SeenRows> seen;
    for (int64_t row = 90 - rows; row < 90; ++row) seen.push_back({.late = {0, row + 1}});
    const std::vector<float> queries = c.Queries(rows, 2.0f);
    const std::vector<float> together = c.Attend(queries, seen, GetParam().level);
    for (int64_t row = 0; row < rows; ++row) {
      const std::vector<float> query(queries.begin() + row * c.query_stride(),
                                     queries.begin() + (row + 1) * c.query_stride());
      const std::vector<float> alone = c.Attend(query, {seen[row]}, GetParam().level);
      const std::vector<float> same(together.begin() + row * c.out_stride(),
                                    together.begin() + (row + 1) * c.out_stride());
      ASSERT_EQ(alone, same) << "row " << row << " of " << rows;
    }
  }
}

// The largest score decides nearly alone, and lies beyond what e^x can hold.
TEST_P(AttentionTest, HugeScoresDoNotOverflow) {
  const int32_t page = 0;
  for (const int64_t queries : {1, 40}) {
    std::vector<float> store = {3e18f, -3e18f, 1.0f, 5.0f, 7.0f, 9.0f};  // 3 keys, 3 values
    std::vector<uint16_t> halves;
    for (const float value : store) halves.push_back(std::bit_cast<uint32_t>(value) >> 16);
    const bool wide = GetParam().element == KvElement::kFloat32;
    const auto* const bytes = wide ? reinterpret_cast<const std::byte*>(store.data())
                                   : reinterpret_cast<const std::byte*>(halves.data());
    std::vector<float> query(queries, 1e19f), out(queries);
    const std::vector<SeenRows> seen(queries, {.late = {0, 3}});
    AttentionScratch scratch;
    AttendPages({.kv = {.keys = bytes,
                        .values = bytes + (wide ? 12 : 6),
                        .pages = &page,
                        .page_rows = 3,
                        .key_dim = 1,
                        .value_dim = 1,
                        .element = GetParam().element},
                 .rows = queries,
                 .seen = seen.data(),
                 .queries = query.data(),
                 .query_stride = 1,
                 .out = out.data(),
                 .out_stride = 1},
                scratch, GetParam().level);
    EXPECT_THAT(out, testing::Each(5.0f));
  }
}

TEST_P(AttentionTest, RowsThatAreNoNumbersMakeNoNumbers) {
  const int32_t page = 0;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t queries : {1, 40}) {
    for (const size_t bad : {0, 1, 2, 3, 4, 5}) {
      std::vector<float> store = {1.0f, 2.0f, 1.0f, 5.0f, 7.0f, 9.0f};
      store[bad] = nan;
      std::vector<uint16_t> halves;
      for (const float value : store) halves.push_back(std::bit_cast<uint32_t>(value) >> 16);
      const bool wide = GetParam().element == KvElement::kFloat32;
      const auto* const bytes = wide ? reinterpret_cast<const std::byte*>(store.data())
                                     : reinterpret_cast<const std::byte*>(halves.data());
      std::vector<float> query(queries, 1.0f), out(queries);
      const std::vector<SeenRows> seen(queries, {.late = {0, 3}});
      AttentionScratch scratch;
      AttendPages({.kv = {.keys = bytes,
                          .values = bytes + (wide ? 12 : 6),
                          .pages = &page,
                          .page_rows = 3,
                          .key_dim = 1,
                          .value_dim = 1,
                          .element = GetParam().element},
                   .rows = queries,
                   .seen = seen.data(),
                   .queries = query.data(),
                   .query_stride = 1,
                   .out = out.data(),
                   .out_stride = 1},
                  scratch, GetParam().level);
      for (const float value : out) EXPECT_TRUE(std::isnan(value)) << "number " << bad;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, AttentionTest, testing::ValuesIn(LevelsAndElements()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace aerie
