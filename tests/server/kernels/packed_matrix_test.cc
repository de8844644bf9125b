#include "server/kernels/packed_matrix.h"

#include <cstring>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace aerie {
namespace {

using testing::ElementsAre;

TEST(PackedMatrixTest, CountsTheWeightsAndNotWhatFillsPanelsUp) {
  EXPECT_EQ(PackedMatrix(WeightElement::kFloat32, 33, 7).weight_bytes(), 33 * 7 * 4);
  EXPECT_EQ(PackedMatrix(WeightElement::kBFloat16, 33, 7).weight_bytes(), 33 * 7 * 2);
  EXPECT_EQ(PackedMatrix(WeightElement::kInt8, 33, 7).weight_bytes(), 33 * 7 + 33 * 4);
  EXPECT_EQ(PackedMatrix(WeightElement::kInt8, 33, 7, /*pairs=*/true).weight_bytes(),
            2 * (33 * 7 + 33 * 4));
  EXPECT_EQ(PackedMatrix(WeightElement::kFloat32, 33, 7).panels(), 2);
  EXPECT_EQ(PackedMatrix(WeightElement::kFloat32, 33, 7, /*pairs=*/true).panels(), 3);
}

TEST(PackedMatrixTest, AChannelOfInt8SpansItsWholeRange) {
  PackedMatrix matrix(WeightElement::kInt8, 2, 3);
  const std::vector<float> rows = {0.5f, -2.54f, 0.0f, 10.0f, 5.0f, -10.0f};
  matrix.SetRows(0, 2, rows.data());
  EXPECT_FLOAT_EQ(matrix.scales()[0], 0.02f);
  EXPECT_FLOAT_EQ(matrix.scales()[1], 10.0f / 127);
  // Pairs of inputs, of all channels one after the other.
  const auto* const data = reinterpret_cast<const int8_t*>(matrix.data());
  EXPECT_THAT(std::vector<int>(data, data + 4), ElementsAre(25, -127, 127, 64));
  EXPECT_THAT(std::vector<int>(data + 64, data + 68), ElementsAre(0, 0, -127, 0));
}

TEST(PackedMatrixTest, PairsOfInputsOfBFloat16StandSideBySideRoundedToTheNearest) {
  PackedMatrix matrix(WeightElement::kBFloat16, 33, 3);
  std::vector<float> rows(33 * 3, 0.0f);
  // Between 1 and its neighbour 1 + 2^-7: below the middle, on it, above it; the even one of two.
  const float steps[] = {1.0f + 0x1p-9f, 1.0f + 0x1p-8f, 1.0f + 0x1.8p-8f};
  for (int i = 0; i < 3; ++i) rows[3 + i] = steps[i];
  rows[3 * 32] = 1.0f + 0x3p-8f;
  matrix.SetRows(0, 33, rows.data());
  const auto* const data = reinterpret_cast<const uint16_t*>(matrix.data());
  EXPECT_THAT(std::vector<int>(data, data + 4), ElementsAre(0, 0, 0x3f80, 0x3f80));
  EXPECT_THAT(std::vector<int>(data + 64, data + 68), ElementsAre(0, 0, 0x3f81, 0));
  EXPECT_EQ(matrix.panel_bytes(), 2 * 32 * 2 * 2);
  EXPECT_EQ(data[128], 0x3f82);
}

TEST(PackedMatrixTest, RowsMayComeInPieces) {
  std::vector<float> rows(70 * 9);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i % 97) - 48.0f;
  PackedMatrix whole(WeightElement::kBFloat16, 70, 9), pieces(WeightElement::kBFloat16, 70, 9);
  whole.SetRows(0, 70, rows.data());
  pieces.SetRows(40, 30, rows.data() + 40 * 9);
  pieces.SetRows(0, 40, rows.data());
  ASSERT_EQ(pieces.panels(), whole.panels());
  EXPECT_EQ(std::memcmp(pieces.data(), whole.data(), whole.panels() * whole.panel_bytes()), 0);
}

TEST(PackedMatrixTest, MovesWithItsWeights) {
  // Large enough for large pages.
  PackedMatrix from(WeightElement::kFloat32, 1024, 1024);
  const std::vector<float> row(1024, 3.0f);
  from.SetRows(0, 1, row.data());
  const std::byte* const data = from.data();
  PackedMatrix to = std::move(from);
  EXPECT_EQ(to.data(), data);
  PackedMatrix again;
  EXPECT_TRUE(again.empty());
  again = std::move(to);
  EXPECT_EQ(reinterpret_cast<const float*>(again.data())[32], 3.0f);
}

}  // namespace
}  // namespace aerie
