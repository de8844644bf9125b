// Attention over pages against plain loops in float64, on every level that this machine runs.
#include "server/kernels/attention.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/kernels/levels.h"

namespace aerie {
namespace {

constexpr int32_t kNoPage = -1;

// A sequence of `length` rows in pages that are in no order, some of them missing, and queries.
// Rows that nobody wrote are NaN.
struct Sequence {
  int64_t length = 0;
  int32_t page_rows = 0, key_dim = 0, value_dim = 0, group = 0;
  KvElement element = KvElement::kFloat32;
  std::vector<int32_t> pages;
  std::vector<std::byte> store;                  // of each page: keys, then values
  std::vector<std::vector<float>> keys, values;  // as stored, by row

  int64_t element_bytes() const { return element == KvElement::kFloat32 ? 4 : 2; }
  int64_t page_bytes() const { return page_rows * (key_dim + value_dim) * element_bytes(); }
};

float Rounded(float value, KvElement element) {
  if (element == KvElement::kFloat32) return value;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0xffff0000u);
}

class Case {
 public:
  Case(uint32_t seed, int64_t length, int32_t page_rows, KvElement element) : random_(seed) {
    s_.length = length;
    s_.page_rows = page_rows;
    s_.element = element;
    s_.key_dim = 1 + Below(70);
    s_.value_dim = 1 + Below(150);
    s_.group = 1 + Below(7);
    const auto count = static_cast<int32_t>((length + page_rows - 1) / page_rows);
    for (int32_t i = 0; i < count; ++i) s_.pages.push_back((i * 7 + 3) % (count * 7 + 1));
    s_.store.resize((count * 7 + 1) * s_.page_bytes(), std::byte{0xff});  // NaN in both elements
    for (int64_t row = 0; row < length; ++row) {
      s_.keys.push_back(Numbers(s_.key_dim));
      s_.values.push_back(Numbers(s_.value_dim));
      const int64_t page = s_.pages[row / page_rows] * s_.page_bytes(), at = row % page_rows;
      Write(s_.keys.back(), page + at * s_.key_dim * s_.element_bytes());
      Write(s_.values.back(),
            page + (page_rows * s_.key_dim + at * s_.value_dim) * s_.element_bytes());
    }
  }

  int32_t Below(int64_t bound) { return static_cast<int32_t>(random_() % bound); }
  const Sequence& sequence() const { return s_; }

  // The worst difference between what AttendPages makes of `seen` and what it should.
  double WorstDifference(std::vector<SeenRows> seen, CpuLevel level) {
    DropUnseenPages(seen);
    const auto rows = static_cast<int64_t>(seen.size());
    // Strides with room between the rows.
    const int64_t query_stride = s_.group * s_.key_dim + 3;
    const int64_t out_stride = s_.group * s_.value_dim + 2;
    const std::vector<float> queries = Unrounded(rows * query_stride);
    std::vector<float> out(rows * out_stride, 77.0f);
    const AttentionArgs args{
        .kv = {.keys = s_.store.data(),
               .values = s_.store.data() + s_.page_rows * s_.key_dim * s_.element_bytes(),
               .page_bytes = s_.page_bytes(),
               .pages = s_.pages.data(),
               .page_rows = s_.page_rows,
               .key_dim = s_.key_dim,
               .value_dim = s_.value_dim,
               .element = s_.element},
        .rows = rows,
        .group = s_.group,
        .seen = seen.data(),
        .queries = queries.data(),
        .query_stride = query_stride,
        .out = out.data(),
        .out_stride = out_stride,
        .scale = 0.3f};
    AttendPages(args, scratch_, level);
    double worst = 0.0;
    for (int64_t row = 0; row < rows; ++row) {
      for (int32_t g = 0; g < s_.group; ++g) {
        const float* const query = queries.data() + row * query_stride + g * s_.key_dim;
        const std::vector<double> expected = Expected(query, seen[row]);
        for (int32_t d = 0; d < s_.value_dim; ++d) {
          const double difference =
              std::abs(out[row * out_stride + g * s_.value_dim + d] - expected[d]);
          if (!(difference <= worst)) worst = difference;  // NaN as well
        }
      }
      EXPECT_EQ(out[(row + 1) * out_stride - 1], 77.0f) << "written past the row";
    }
    return worst;
  }

 private:
  std::vector<float> Unrounded(int64_t count) {
    std::uniform_real_distribution<float> numbers(-2.0f, 2.0f);
    std::vector<float> out(count);
    for (float& value : out) value = numbers(random_);
    return out;
  }

  std::vector<float> Numbers(int64_t count) {
    std::vector<float> out = Unrounded(count);
    for (float& value : out) value = Rounded(value, s_.element);
    return out;
  }

  void Write(const std::vector<float>& numbers, int64_t at) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      const uint32_t bits = std::bit_cast<uint32_t>(numbers[i]);
      const auto half = static_cast<uint16_t>(bits >> 16);
      if (s_.element == KvElement::kFloat32) {
        std::memcpy(s_.store.data() + at + 4 * i, &bits, 4);
      } else {
        std::memcpy(s_.store.data() + at + 2 * i, &half, 2);
      }
    }
  }

  static bool Sees(const SeenRows& seen, int64_t row) {
    const auto within = [row](const RowRange& r) { return r.begin <= row && row < r.end; };
    return within(seen.early) || within(seen.late) ||
           std::find(seen.single, seen.single + seen.singles, row) != seen.single + seen.singles;
  }

  void DropUnseenPages(const std::vector<SeenRows>& seen) {
    for (size_t page = 0; page < s_.pages.size(); ++page) {
      bool any = false;
      for (int64_t i = 0; i < s_.page_rows; ++i) {
        for (const SeenRows& rows : seen)
          any = any || Sees(rows, static_cast<int64_t>(page) * s_.page_rows + i);
      }
      if (!any) s_.pages[page] = kNoPage;
    }
  }

  std::vector<double> Expected(const float* query, const SeenRows& seen) const {
    std::vector<double> scores(s_.length, -std::numeric_limits<double>::infinity());
    double largest = scores[0];
    for (int64_t row = 0; row < s_.length; ++row) {
      if (!Sees(seen, row)) continue;
      scores[row] = 0.0;
      for (int32_t d = 0; d < s_.key_dim; ++d)
        scores[row] += 0.3 * double{query[d]} * double{s_.keys[row][d]};
      largest = std::max(largest, scores[row]);
    }
    std::vector<double> out(s_.value_dim);
    double total = 0.0;
    for (int64_t row = 0; row < s_.length; ++row) {
      const double weight = std::exp(scores[row] - largest);
      total += weight;
      for (int32_t d = 0; d < s_.value_dim; ++d) out[d] += weight * double{s_.values[row][d]};
    }
    for (double& value : out) value /= total;
    return out;
  }

  std::mt19937 random_;
  Sequence s_;
  AttentionScratch scratch_;
};

// float32 scores up to 60 keep about 5e-6 of their value, and so do the weights.
constexpr double kTolerance = 5e-5;

class AttentionTest : public testing::TestWithParam<LevelAndElement> {
 protected:
  void ExpectRight(Case& c, const std::vector<SeenRows>& seen) {
    const double worst = c.WorstDifference(seen, GetParam().level);
    EXPECT_TRUE(worst <= kTolerance)
        << worst << ": " << seen.size() << " rows of " << c.sequence().group << " queries, "
        << c.sequence().length << " rows in pages of " << c.sequence().page_rows;
  }
};

TEST_P(AttentionTest, AQuerySeesWhatItIsSaidToSee) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    Case c(seed, 1 + seed * 7 % 300, 1 + seed * 5 % 37, GetParam().element);
    ExpectRight(c, {{.late = {0, c.sequence().length}}});
  }
}

// Row by row one more, as in a prompt: many queries, and a block that ends in the middle of a
// group.
TEST_P(AttentionTest, RowsOfAPromptSeeUpToThemselves) {
  for (uint32_t seed = 0; seed < 12; ++seed) {
    Case c(seed, 20 + seed * 13, 1 + seed * 11 % 70, GetParam().element);
    const int64_t first = c.Below(20);
    std::vector<SeenRows> seen;
    for (int64_t row = first; row < c.sequence().length; ++row)
      seen.push_back({.late = {0, row + 1}});
    ExpectRight(c, seen);
  }
}

TEST_P(AttentionTest, AWindowKeepsTheBeginningAndTheEndOnly) {
  for (uint32_t seed = 0; seed < 24; ++seed) {
    Case c(seed, 150, 1 + seed * 3 % 40, GetParam().element);
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
    Case c(seed, 90, 1 + seed * 3 % 40, GetParam().element);
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
