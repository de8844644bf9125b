#include "server/model/kv_pages.h"

#include <unistd.h>

#include <fstream>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

constexpr KvShape kShape{.layers = 2, .kv_heads = 3, .key_dim = 5, .value_dim = 7};
constexpr int32_t kPageRows = 4;

KvPages Reserved(int64_t pages) {
  return *KvPages::Reserve(kShape, pages * kShape.layers * kPageRows * kShape.row_bytes(),
                           kPageRows);
}

// Every number says where it belongs.
float Number(int64_t layer, int64_t row, int64_t head, int64_t channel) {
  return static_cast<float>(layer * 100000 + row * 1000 + head * 100 + channel);
}

void Write(KvPages& kv, absl::Span<const PageId> pages, int64_t first, int64_t rows) {
  for (int64_t layer = 0; layer < kShape.layers; ++layer) {
    std::vector<float> keys, values;
    for (int64_t row = first; row < first + rows; ++row) {
      for (int64_t head = 0; head < kShape.kv_heads; ++head) {
        for (int64_t i = 0; i < kShape.key_dim; ++i) keys.push_back(Number(layer, row, head, i));
        for (int64_t i = 0; i < kShape.value_dim; ++i)
          values.push_back(-Number(layer, row, head, i));
      }
    }
    kv.Write(layer, pages, first, rows, keys.data(), values.data());
  }
}

const float* RowAt(const std::byte* page_0, const PagedRows& kv, int64_t row, int64_t width) {
  return reinterpret_cast<const float*>(page_0 + kv.pages[row / kv.page_rows] * kv.page_bytes) +
         row % kv.page_rows * width;
}

void ExpectHolds(const KvPages& kv, absl::Span<const PageId> pages, int64_t rows) {
  for (int64_t layer = 0; layer < kShape.layers; ++layer) {
    for (int64_t head = 0; head < kShape.kv_heads; ++head) {
      const PagedRows own = kv.RowsOf(layer, head, pages);
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t i = 0; i < kShape.key_dim; ++i)
          ASSERT_EQ(RowAt(own.keys, own, row, kShape.key_dim)[i], Number(layer, row, head, i));
        for (int64_t i = 0; i < kShape.value_dim; ++i)
          ASSERT_EQ(RowAt(own.values, own, row, kShape.value_dim)[i], -Number(layer, row, head, i));
      }
    }
  }
}

TEST(KvPagesTest, RowsLieWhereTheirPagesSay) {
  KvPages kv = Reserved(16);
  const std::vector<PageId> pages = {11, 3, 0, 15};
  Write(kv, pages, 0, 5);
  Write(kv, pages, 5, 1);
  Write(kv, pages, 6, 10);
  ExpectHolds(kv, pages, 16);
}

TEST(KvPagesTest, ACopyHoldsTheSameAndLeavesTheRestAlone) {
  KvPages kv = Reserved(16);
  const std::vector<PageId> pages = {11, 3};
  Write(kv, pages, 0, 8);
  kv.Copy(3, 7);
  kv.Copy(11, 2);
  ExpectHolds(kv, {2, 7}, 8);
  Write(kv, {0, 7}, 6, 2);
  ExpectHolds(kv, pages, 8);
}

TEST(KvPagesTest, BFloat16TakesHalfThePlace) {
  KvShape half = kShape;
  half.element = KvElement::kBFloat16;
  const auto kv = KvPages::Reserve(half, 1 << 20, kPageRows);
  ASSERT_THAT(kv, IsOk());
  EXPECT_EQ(2 * kv->store().page_bytes, Reserved(16).store().page_bytes);
}

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

TEST(KvPagesTest, PagesThatWereNeverWrittenTakeNoMemory) {
  const int64_t before = ResidentBytes();
  auto kv = KvPages::Reserve(kShape, int64_t{4} << 30, kPageRows);
  ASSERT_THAT(kv, IsOk());
  const std::vector<PageId> pages = {kv->store().num_pages - 1};
  Write(*kv, pages, 0, kPageRows);
  ExpectHolds(*kv, pages, kPageRows);
  EXPECT_LT(ResidentBytes() - before, int64_t{64} << 20);
}

}  // namespace
}  // namespace aerie
