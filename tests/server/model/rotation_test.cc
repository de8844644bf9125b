// The rotation against its definition. What every kind does to a draft is judged elsewhere, against
// a reference; here is what that cannot see: far positions, and which rows turn by which length.
#include "server/model/rotation.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/model/rope_frequencies.h"
#include "server/model/tensor_view.h"

namespace aerie {
namespace {

constexpr int32_t kDims = 6;

RopeSpec Rope(RopeType type = RopeType::kDefault) {
  RopeSpec rope;
  rope.type.value = type;
  rope.theta.value = 10000.0;
  rope.dims.value = kDims;
  rope.factor.value = type == RopeType::kDefault ? 1.0 : 4.0;
  rope.original_max_positions.value = type == RopeType::kDynamic ? 16 : 0;
  return rope;
}

at::Tensor Numbers(int64_t rows, int64_t heads, int64_t width) {
  return at::arange(1, rows * heads * width + 1, at::kFloat).view({rows, heads, width});
}

// At a position past any that a config speaks of.
TEST(RotationTest, PairsChannelsHalfAHeadApart) {
  constexpr int64_t kPosition = 70001;
  Rotation rotation(Rope());
  const at::Tensor x = Numbers(1, 2, kDims);
  const at::Tensor rotated = rotation.Rotate(x, rotation.At({kPosition}, {kPosition + 1}));
  for (int64_t head = 0; head < 2; ++head) {
    for (int64_t i = 0; i < kDims / 2; ++i) {
      const double angle = kPosition * std::pow(10000.0, -2.0 * i / kDims);
      const double a = x[0][head][i].item<double>(), b = x[0][head][i + kDims / 2].item<double>();
      EXPECT_NEAR(rotated[0][head][i].item<double>(), a * std::cos(angle) - b * std::sin(angle),
                  1e-5);
      EXPECT_NEAR(rotated[0][head][i + kDims / 2].item<double>(),
                  b * std::cos(angle) + a * std::sin(angle), 1e-5);
    }
  }
}

TEST(RotationTest, InterleavedPairsAreNeighbours) {
  RopeSpec spec = Rope();
  Rotation apart(spec);
  spec.interleaved.value = true;
  Rotation interleaved(spec);
  const at::Tensor x = Numbers(1, 2, kDims);
  const at::Tensor order = Indices({0, 2, 4, 1, 3, 5});  // first members, then second ones
  const at::Tensor expected = apart.Rotate(x.index_select(2, order), apart.At({9}, {10}));
  const at::Tensor actual = interleaved.Rotate(x, interleaved.At({9}, {10}));
  EXPECT_TRUE(at::equal(actual.index_select(2, order), expected));
}

TEST(RotationTest, ChannelsBeyondThoseThatTurnStay) {
  Rotation rotation(Rope());
  const at::Tensor x = Numbers(2, 1, kDims + 4);
  const Turns turns = rotation.At({5, 6}, {7, 7});
  const at::Tensor rotated = rotation.Rotate(x, turns);
  EXPECT_TRUE(at::equal(rotated.narrow(2, kDims, 4), x.narrow(2, kDims, 4)));
  EXPECT_TRUE(
      at::equal(rotated.narrow(2, 0, kDims), rotation.Rotate(x.narrow(2, 0, kDims), turns)));
}

TEST(RotationTest, EachRowHasItsOwnPosition) {
  Rotation rotation(Rope());
  const at::Tensor x = at::ones({2, 1, kDims}, at::kFloat);
  const at::Tensor both = rotation.Rotate(x, rotation.At({9, 0}, {10, 1}));
  EXPECT_TRUE(at::equal(both[1], x[1])) << "position 0 is no rotation";
  EXPECT_TRUE(
      at::equal(both.narrow(0, 0, 1), rotation.Rotate(x.narrow(0, 0, 1), rotation.At({9}, {10}))));
}

TEST(RotationTest, DynamicRowsTurnByTheLengthOfTheirOwnSequence) {
  Rotation rotation(Rope(RopeType::kDynamic));
  const Turns both = rotation.At({9, 9, 9}, {10, 16, 40});
  Rotation plain(Rope());
  const Turns unscaled = plain.At({9}, {10});
  for (const int64_t row : {0, 1}) {
    EXPECT_TRUE(at::equal(both.cos.narrow(0, row, 1), unscaled.cos)) << "up to the trained length";
    EXPECT_TRUE(at::equal(both.sin.narrow(0, row, 1), unscaled.sin));
  }
  // theta x (4 x 40 / 16 - 3)^(6 / 4)
  const double theta = 10000.0 * std::pow(7.0, 1.5);
  for (int64_t i = 0; i < kDims / 2; ++i) {
    EXPECT_NEAR(both.sin[2][0][i].item<double>(), std::sin(9 * std::pow(theta, -2.0 * i / kDims)),
                1e-6);
  }
}

// Linear scaling has the same meaning as positions that are counted in steps of 1 / factor.
TEST(RopeFrequenciesTest, LinearDividesEveryAngle) {
  const auto plain = RopeFrequencies(Rope(), 0),
             linear = RopeFrequencies(Rope(RopeType::kLinear), 0);
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_DOUBLE_EQ(linear[i], plain[i] / 4.0);
}

}  // namespace
}  // namespace aerie
