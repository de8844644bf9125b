#include "server/model/tensor_view.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/safetensors/safetensors_writer.h"

namespace aerie {
namespace {

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

TEST(TensorViewTest, RowsOfAMappedMatrixComeAsAskedAndKeepItsOwner) {
  auto bytes = std::make_shared<const std::string>(
      "x" + BytesOf(std::vector<float>{1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}));
  const TensorSpan span{"w", TensorType::kF32, {3, 2}, std::string_view(*bytes).substr(1)};
  const MappedRows matrix(span, bytes);
  bytes.reset();
  EXPECT_EQ(matrix.nbytes(), 24);
  const at::Tensor rows = matrix.Rows({2, 0, 2});
  EXPECT_EQ(rows.sizes(), at::IntArrayRef({3, 2}));
  EXPECT_THAT(Floats(rows), testing::ElementsAre(5.0f, 6.0f, 1.0f, 2.0f, 5.0f, 6.0f));
}

}  // namespace
}  // namespace aerie
