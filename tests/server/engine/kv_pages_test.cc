// The books of the draft KV against the plainest of models: every sequence has its rows in a list
// of its own.
#include "server/engine/kv_pages.h"

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace aerie {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kAny = INT64_MAX;

// A store whose pages hold numbers, so that what a table leads to can be read.
class Store {
 public:
  explicit Store(const KvStore& shape)
      : rows_per_page_(shape.page_rows),
        rows_(static_cast<size_t>(shape.num_pages) * static_cast<size_t>(shape.page_rows), -1),
        pages(shape, [this](PageId from, PageId to) { Copy(from, to); }) {}

  void Write(PageTable* table, int64_t row, int64_t value) { At(*table, row) = value; }
  int64_t Read(const PageTable& table, int64_t row) { return At(table, row); }
  bool Holds(const PageTable& table, int64_t row) const {
    const auto page = static_cast<size_t>(row / rows_per_page_);
    return page < table.pages().size() && table.pages()[page] != kNoPage;
  }
  int64_t copies() const { return copies_; }

 private:
  void Copy(PageId from, PageId to) {
    ++copies_;
    ASSERT_NE(from, to);
    for (int64_t i = 0; i < rows_per_page_; ++i) {
      rows_[static_cast<size_t>(to * rows_per_page_ + i)] =
          rows_[static_cast<size_t>(from * rows_per_page_ + i)];
    }
  }
  int64_t& At(const PageTable& table, int64_t row) {
    const PageId page = table.pages().at(static_cast<size_t>(row / rows_per_page_));
    EXPECT_NE(page, kNoPage) << "row " << row;
    return rows_.at(static_cast<size_t>(page * rows_per_page_ + row % rows_per_page_));
  }

  const int64_t rows_per_page_;
  std::vector<int64_t> rows_;
  int64_t copies_ = 0;

 public:
  KvPages pages;
};

// Writes rows base .. end - 1 with values of their own, as a round does.
void Append(Store* store, PageTable* table, int64_t base, int64_t end, int64_t value = 0) {
  ASSERT_TRUE(store->pages.Reserve(table, base, end, kAny));
  store->pages.MakeWritable(table, base, end);
  for (int64_t row = base; row < end; ++row) store->Write(table, row, value + row);
  store->pages.Trim(table);
}

TEST(KvPagesTest, TakesAPageForEachOfItsRowsBegun) {
  Store store({.page_rows = 4, .num_pages = 10});
  PageTable table;
  Append(&store, &table, 0, 5);
  EXPECT_EQ(store.pages.usage().pages_used, 2);
  Append(&store, &table, 5, 8);
  EXPECT_EQ(store.pages.usage().pages_used, 2) << "the rows had room in the page that was begun";
  Append(&store, &table, 8, 9);
  EXPECT_EQ(store.pages.usage().pages_used, 3);
  store.pages.Truncate(&table, 4);
  store.pages.Trim(&table);
  EXPECT_EQ(store.pages.usage().pages_used, 1);
  store.pages.Release(&table);
  EXPECT_EQ(store.pages.usage().pages_used, 0);
  EXPECT_EQ(store.pages.usage().pages_total, 10);
}

TEST(KvPagesTest, TakesNothingWhenThereIsNotEnough) {
  Store store({.page_rows = 4, .num_pages = 3});
  PageTable a, b;
  Append(&store, &a, 0, 8);
  EXPECT_FALSE(store.pages.Reserve(&b, 0, 5, kAny));
  EXPECT_TRUE(b.empty());
  EXPECT_FALSE(store.pages.Reserve(&a, 2, 13, kAny));
  EXPECT_EQ(store.Read(a, 7), 7) << "a reservation that fails does not truncate either";
  EXPECT_TRUE(store.pages.Reserve(&a, 2, 12, kAny));
  store.pages.Release(&a);
  EXPECT_EQ(store.pages.free_pages(), 3);
}

TEST(KvPagesTest, PutsByForARollbackWhatTheRollbackSetsFree) {
  Store store({.page_rows = 4, .num_pages = 3});
  PageTable table;
  Append(&store, &table, 0, 12);
  Append(&store, &table, 1, 12, 100);
  EXPECT_EQ(store.Read(table, 0), 0);
  EXPECT_EQ(store.Read(table, 11), 111);
  store.pages.Release(&table);
}

TEST(KvPagesTest, SharesThePagesOfAForkUntilOneIsWritten) {
  Store store({.page_rows = 4, .num_pages = 10});
  PageTable parent;
  Append(&store, &parent, 0, 10);
  PageTable fork = store.pages.Fork(parent, 6);
  EXPECT_THAT(fork.pages(), ElementsAre(parent.pages()[0], parent.pages()[1]));
  EXPECT_EQ(store.pages.usage().pages_used, 3);
  EXPECT_EQ(store.pages.usage().pages_shared, 2);
  Append(&store, &fork, 6, 8, 100);
  EXPECT_EQ(store.copies(), 1);
  EXPECT_EQ(store.pages.usage().pages_shared, 1);
  for (int64_t row = 0; row < 10; ++row) EXPECT_EQ(store.Read(parent, row), row);
  for (int64_t row = 0; row < 8; ++row) EXPECT_EQ(store.Read(fork, row), row < 6 ? row : 100 + row);
  store.pages.Release(&parent);
  EXPECT_EQ(store.pages.usage().pages_shared, 0);
  for (int64_t row = 0; row < 8; ++row) EXPECT_EQ(store.Read(fork, row), row < 6 ? row : 100 + row);
  store.pages.Release(&fork);
  EXPECT_EQ(store.pages.usage().pages_used, 0);
}

TEST(KvPagesTest, CopiesNoPageOfWhichNoRowIsKept) {
  Store store({.page_rows = 4, .num_pages = 10});
  PageTable parent;
  Append(&store, &parent, 0, 8);
  PageTable fork = store.pages.Fork(parent, 8);
  Append(&store, &fork, 4, 8, 100);
  EXPECT_EQ(store.copies(), 0);
  EXPECT_EQ(store.Read(parent, 5), 5);
  store.pages.Release(&parent);
  store.pages.Release(&fork);
}

TEST(KvPagesTest, DropsWhatNoLaterRowSeesAndKeepsTheSink) {
  Store store({.page_rows = 4, .num_pages = 10});
  const VisibleRows visible{.start = 0, .sink = 2, .window = 5};
  PageTable table;
  Append(&store, &table, 0, 20);
  // Row 17 sees rows 13 .. 17, and rows 0 and 1.
  store.pages.DropUnseen(&table, visible, 17);
  store.pages.Trim(&table);
  EXPECT_THAT(table.pages(), ElementsAre(::testing::Ne(kNoPage), kNoPage, kNoPage,
                                         ::testing::Ne(kNoPage), ::testing::Ne(kNoPage)));
  EXPECT_EQ(store.pages.usage().pages_used, 3);
  EXPECT_EQ(store.pages.ResumeFrom(table, visible, 20), 20);
  EXPECT_EQ(store.pages.ResumeFrom(table, visible, 16), 16) << "row 16 sees from row 12 on";
  EXPECT_EQ(store.pages.ResumeFrom(table, visible, 15), 4) << "row 15 saw row 11, which is gone";
  EXPECT_EQ(store.pages.ResumeFrom(table, visible, 3), 3);
  store.pages.Truncate(&table, 4);
  EXPECT_EQ(store.pages.ResumeFrom(table, visible, 4), 4);
  store.pages.Release(&table);
}

TEST(KvPagesTest, NeedsNoMorePagesForALongPromptThanItsWindowHolds) {
  Store store({.page_rows = 4, .num_pages = 6});
  const VisibleRows visible{.start = 0, .sink = 1, .window = 7};
  PageTable table;
  ASSERT_TRUE(store.pages.Reserve(&table, 0, 200, 6));
  for (int64_t row = 0; row < 200; row += 5) {
    store.pages.MakeWritable(&table, row, row + 5);
    for (int64_t i = row; i < row + 5; ++i) store.Write(&table, i, i);
    for (int64_t i = row; i > row - 7 && i >= 0; --i) EXPECT_EQ(store.Read(table, i), i);
    store.pages.DropUnseen(&table, visible, row + 5);
  }
  store.pages.Release(&table);
}

TEST(KvPagesTest, TellsWhatWouldBeFreeIfOnlySomeWereKept) {
  Store store({.page_rows = 4, .num_pages = 10});
  PageTable a, b;
  Append(&store, &a, 0, 12);
  Append(&store, &b, 0, 4);
  PageTable fork = store.pages.Fork(a, 5);
  EXPECT_EQ(store.pages.FreeBut({}), 10);
  EXPECT_EQ(store.pages.FreeBut({&fork}), 8);
  EXPECT_EQ(store.pages.FreeBut({&fork, &a}), 7);
  EXPECT_EQ(store.pages.FreeBut({&b}), 9);
  for (PageTable* table : {&a, &b, &fork}) store.pages.Release(table);
}

// One sequence and what its rows must read as.
struct Sequence {
  PageTable table;
  std::vector<int64_t> rows;
  int64_t start = 0;
};

class KvPagesPropertyTest : public ::testing::TestWithParam<int> {};

TEST_P(KvPagesPropertyTest, EveryRowReadsAsInAListOfItsOwnAndNoPageIsLost) {
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()));
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  const auto page_rows = static_cast<int32_t>(draw(1, 5));
  const int64_t window = GetParam() % 3 == 0 ? draw(1, 9) : 0;
  const int64_t sink = draw(0, 3);
  Store store({.page_rows = page_rows, .num_pages = static_cast<int32_t>(draw(40, 80))});
  std::vector<Sequence> sequences(4);
  int64_t value = 0;
  int refused = 0, appends = 0;

  const auto visible_of = [&](const Sequence& s) { return VisibleRows{s.start, sink, window}; };
  const auto length_of = [](const Sequence& s) {
    return s.start + static_cast<int64_t>(s.rows.size());
  };
  const auto check = [&](const Sequence& s) {
    const VisibleRows visible = visible_of(s);
    for (int64_t row = s.start; row < length_of(s); ++row) {
      if (!visible.Sees(length_of(s), row)) continue;
      ASSERT_TRUE(store.Holds(s.table, row)) << "row " << row << " of " << length_of(s);
      ASSERT_EQ(store.Read(s.table, row), s.rows[static_cast<size_t>(row - s.start)]);
    }
  };
  const auto count_pages = [&] {
    std::map<PageId, int> uses;
    for (const Sequence& s : sequences) {
      for (const PageId page : s.table.pages()) {
        if (page != kNoPage) ++uses[page];
      }
    }
    int64_t shared = 0;
    for (const auto& [page, count] : uses) shared += count > 1;
    ASSERT_EQ(store.pages.usage().pages_used, static_cast<int64_t>(uses.size()));
    ASSERT_EQ(store.pages.usage().pages_shared, shared);
  };

  for (int step = 0; step < 600; ++step) {
    Sequence& s = sequences[static_cast<size_t>(draw(0, 3))];
    const int64_t length = length_of(s);
    switch (draw(0, 9)) {
      case 0:  // ends, and another one begins
        store.pages.Release(&s.table);
        s.rows.clear();
        s.start = draw(0, 2) == 0 ? draw(0, 20) : 0;
        break;
      case 1: {  // forks
        Sequence& other = sequences[static_cast<size_t>(draw(0, 3))];
        const int64_t shared = draw(s.start, length);
        if (&other == &s || store.pages.ResumeFrom(s.table, visible_of(s), shared) != shared) break;
        store.pages.Release(&other.table);
        other.table = store.pages.Fork(s.table, shared);
        other.start = s.start;
        other.rows.assign(s.rows.begin(), s.rows.begin() + (shared - s.start));
        break;
      }
      default: {  // goes on, from a row behind its end now and then, and leaves guesses behind
        int64_t base = draw(0, 3) == 0 ? draw(s.start, length) : length;
        base = store.pages.ResumeFrom(s.table, visible_of(s), base);
        const int64_t end = base + draw(1, 12);
        const int64_t guesses = draw(0, 4);
        if (!store.pages.Reserve(&s.table, base, end + guesses, kAny)) {
          ++refused;  // and begins anew, so that the store does not stay full
          store.pages.Release(&s.table);
          s.rows.clear();
          break;
        }
        ++appends;
        s.rows.resize(static_cast<size_t>(base - s.start));
        store.pages.MakeWritable(&s.table, base, end);
        for (int64_t row = base; row < end; ++row) {
          store.Write(&s.table, row, ++value);
          s.rows.push_back(value);
        }
        store.pages.DropUnseen(&s.table, visible_of(s), end);
        store.pages.MakeWritable(&s.table, end, end + guesses);
        for (int64_t row = end; row < end + guesses; ++row) store.Write(&s.table, row, -7);
        store.pages.Truncate(&s.table, end);
        store.pages.Trim(&s.table);
      }
    }
    for (const Sequence& each : sequences) ASSERT_NO_FATAL_FAILURE(check(each)) << "step " << step;
    ASSERT_NO_FATAL_FAILURE(count_pages()) << "step " << step;
  }
  for (Sequence& s : sequences) store.pages.Release(&s.table);
  EXPECT_EQ(store.pages.usage().pages_used, 0);
  EXPECT_EQ(store.pages.usage().pages_shared, 0);
  EXPECT_GT(appends, refused);
  EXPECT_GT(page_rows == 1 ? 1 : store.copies(), 0) << "no page was ever shared and written";
}

INSTANTIATE_TEST_SUITE_P(Seeds, KvPagesPropertyTest, ::testing::Range(0, 100));

}  // namespace
}  // namespace aerie
