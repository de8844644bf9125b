// The parts under the model that need tensors of their own: the cache and the reading of bytes.
#include "server/model/kv_cache.h"

#include <c10/core/InferenceMode.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/model/tensor_view.h"
#include "tests/server/checkpoint/safetensors_writer.h"

namespace aerie {
namespace {

constexpr KvShape kShape{.layers = 2,
                         .kv_heads = 2,
                         .head_dim = 3,
                         .value_dim = 5,
                         .hidden_size = 4,
                         .dtype = at::kFloat};

// [rows, kv_heads, width]; every element says where it belongs.
at::Tensor Rows(int64_t layer, int64_t first, int64_t count, int64_t width) {
  const at::Tensor rows = at::arange(first, first + count, at::kFloat).view({count, 1, 1}) * 100.0;
  const at::Tensor inner = at::arange(2 * width, at::kFloat).view({1, 2, width});
  return rows + inner + static_cast<double>(layer) * 1e6;
}

void WriteAll(KvSlot& slot, int64_t at_row, int64_t first, int64_t count) {
  slot.Reserve(at_row + count);
  for (const int64_t layer : {0, 1}) {
    slot.Write(layer, at_row, Rows(layer, first, count, kShape.head_dim),
               -Rows(layer, first, count, kShape.value_dim));
  }
}

void ExpectHolds(const KvSlot& slot, int64_t rows) {
  for (const int64_t layer : {0, 1}) {
    EXPECT_TRUE(
        at::equal(slot.Keys(layer, rows), Rows(layer, 0, rows, kShape.head_dim).transpose(0, 1)));
    EXPECT_TRUE(at::equal(slot.Values(layer, rows),
                          -Rows(layer, 0, rows, kShape.value_dim).transpose(0, 1)));
  }
}

void Append(KvSlot& slot, int64_t count, const at::Tensor& output = {}) {
  const int64_t first = slot.length();
  WriteAll(slot, first, first, count);
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
  WriteAll(slot, 5, 50, 4);
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
