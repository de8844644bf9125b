// The parts under the model that need tensors of their own: the cache, the rotation, the reading of
// bytes.
#include "server/model/kv_cache.h"

#include <c10/core/InferenceMode.h>

#include <cmath>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/model/rope_table.h"
#include "server/model/tensor_view.h"
#include "tests/server/checkpoint/safetensors_writer.h"

namespace aerie {
namespace {

constexpr KvShape kShape{.kv_heads = 2, .head_dim = 3, .hidden_size = 4, .dtype = at::kFloat};

// [rows, kv_heads, head_dim]; every element says where it belongs.
at::Tensor Rows(int64_t first, int64_t count, double sign) {
  const at::Tensor rows = at::arange(first, first + count, at::kFloat).view({count, 1, 1}) * 100.0;
  const at::Tensor inner = at::arange(6, at::kFloat).view({1, 2, 3});
  return (rows + inner) * sign;
}

void ExpectHolds(const KvSlot& slot, int64_t rows) {
  EXPECT_TRUE(at::equal(slot.Keys(rows), Rows(0, rows, 1).transpose(0, 1)));
  EXPECT_TRUE(at::equal(slot.Values(rows), Rows(0, rows, -1).transpose(0, 1)));
}

void Append(KvSlot& slot, int64_t count, const at::Tensor& output = {}) {
  const int64_t first = slot.length();
  slot.Reserve(first + count);
  slot.Write(first, Rows(first, count, 1), Rows(first, count, -1));
  slot.Commit(first + count, output);
}

TEST(KvSlotTest, GrowingKeepsTheRowsThatCount) {
  KvSlot slot(kShape);
  Append(slot, 1);
  for (const int64_t count : {63, 1, 200, 7}) Append(slot, count);
  EXPECT_EQ(slot.length(), 272);
  ExpectHolds(slot, 272);
}

TEST(KvSlotTest, WrittenRowsCountOnlyWhenTheyAreCommitted) {
  KvSlot slot(kShape);
  Append(slot, 5);
  slot.Reserve(9);
  slot.Write(5, Rows(50, 4, 1), Rows(50, 4, -1));
  EXPECT_EQ(slot.length(), 5);
  Append(slot, 4);
  ExpectHolds(slot, 9);
}

TEST(KvSlotTest, TheOutputBelongsToTheLastRowOnly) {
  KvSlot slot(kShape);
  EXPECT_FALSE(slot.has_output());
  Append(slot, 3, at::full({4}, 7.0f));
  EXPECT_TRUE(slot.has_output());
  EXPECT_TRUE(at::equal(slot.output(), at::full({1, 4}, 7.0f)));
  Append(slot, 1);
  EXPECT_FALSE(slot.has_output());
  slot.Truncate(3);
  EXPECT_TRUE(slot.has_output()) << "the row it belongs to is the last again";
  slot.Truncate(2);
  Append(slot, 1);
  EXPECT_FALSE(slot.has_output()) << "another row stands in its place";
}

TEST(KvSlotTest, TheOutputIsACopy) {
  KvSlot slot(kShape);
  at::Tensor output = at::full({4}, 7.0f);
  Append(slot, 1, output);
  output.fill_(8.0f);
  EXPECT_TRUE(at::equal(slot.output(), at::full({1, 4}, 7.0f)));
}

TEST(KvCacheTest, AClosedSlotComesBackEmpty) {
  KvCache cache(kShape, 2);
  const SlotId first = *cache.Open();
  Append(cache.at(first), 4, at::full({4}, 1.0f));
  const SlotId second = *cache.Open();
  cache.Close(first);
  const SlotId again = *cache.Open();
  EXPECT_NE(again, second);
  EXPECT_EQ(cache.at(again).length(), 0);
  EXPECT_FALSE(cache.at(again).has_output());
}

// The rotation against its definition, at a position past any table that a config would size.
TEST(RopeTableTest, PairsChannelsHalfAHeadApart) {
  constexpr int64_t kDim = 6, kPosition = 70001;
  constexpr double kTheta = 10000.0;
  RopeTable table(kTheta, kDim);
  table.Reserve(3);
  table.Reserve(kPosition + 1);
  const at::Tensor x = at::arange(1, 2 * kDim + 1, at::kFloat).view({1, 2, kDim});
  const at::Tensor rotated = table.Rotate(x, Indices({kPosition}));
  for (int64_t head = 0; head < 2; ++head) {
    for (int64_t i = 0; i < kDim / 2; ++i) {
      const double angle = kPosition * std::pow(kTheta, -2.0 * i / kDim);
      const double a = x[0][head][i].item<double>(), b = x[0][head][i + kDim / 2].item<double>();
      EXPECT_NEAR(rotated[0][head][i].item<double>(), a * std::cos(angle) - b * std::sin(angle),
                  1e-5);
      EXPECT_NEAR(rotated[0][head][i + kDim / 2].item<double>(),
                  b * std::cos(angle) + a * std::sin(angle), 1e-5);
    }
  }
}

TEST(RopeTableTest, EachRowHasItsOwnPosition) {
  RopeTable table(10000.0, 4);
  table.Reserve(10);
  const at::Tensor x = at::ones({2, 1, 4}, at::kFloat);
  const at::Tensor both = table.Rotate(x, Indices({9, 0}));
  EXPECT_TRUE(at::equal(both[1], x[1])) << "position 0 is no rotation";
  EXPECT_TRUE(at::equal(both.narrow(0, 0, 1), table.Rotate(x.narrow(0, 0, 1), Indices({9}))));
}

TEST(TensorViewTest, UnalignedBytesAreReadAsWell) {
  const std::string bytes = "x" + BytesOf(std::vector<float>{1.5f, -2.0f});
  const TensorSpan span{"w", TensorType::kF32, {2, 1}, std::string_view(bytes).substr(1)};
  const at::Tensor tensor = CopyTensor(span);
  EXPECT_THAT(Floats(tensor), testing::ElementsAre(1.5f, -2.0f));
  EXPECT_EQ(tensor.sizes(), at::IntArrayRef({2, 1}));
}

TEST(TensorViewTest, ATensorOutlivesItsBytes) {
  std::string bytes = BytesOf(std::vector<float>{1.5f, -2.0f});
  const at::Tensor tensor = CopyTensor({"w", TensorType::kF32, {2}, bytes});
  bytes.assign(bytes.size(), '\0');
  EXPECT_THAT(Floats(tensor), testing::ElementsAre(1.5f, -2.0f));
}

}  // namespace
}  // namespace aerie
