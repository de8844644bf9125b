#include "server/verify/profiles.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace aerie {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::SizeIs;

TEST(ProfileTensorsTest, GivesQuantilesOfTheSizesOfRows) {
  // Rows of size 0, 1, ..., 20, in no order, over two sequences.
  std::vector<float> first, second;
  for (int row = 0; row < 21; ++row) {
    const auto size = static_cast<float>(row * 8 % 21);
    std::vector<float>& values = row < 10 ? first : second;
    values.push_back(size);
    values.push_back(-size);
  }
  const std::vector<int32_t> tokens(21, 1);
  CaptureSet captures;
  captures.hidden_size = 2;
  captures.tensors = {
      {"a", "", TensorClaim{TensorClaim::Kind::kBoundary, 7}, CaptureTensor::Origin::kRecorded, -1},
      {"made", "", std::nullopt, CaptureTensor::Origin::kTargetEmbedding, -1}};
  captures.sequences.push_back({"0",
                                absl::MakeSpan(tokens).subspan(0, 10),
                                std::nullopt,
                                {ViewFloats(first, 2), ViewFloats(first, 2)}});
  captures.sequences.push_back({"1",
                                absl::MakeSpan(tokens).subspan(0, 11),
                                std::nullopt,
                                {ViewFloats(second, 2), ViewFloats(second, 2)}});
  const auto profiles = ProfileTensors(captures);
  ASSERT_THAT(profiles, SizeIs(1)) << "only what was recorded";
  EXPECT_EQ(profiles[0].tensor, "a");
  EXPECT_EQ(profiles[0].claim, "boundary 7");
  EXPECT_EQ(profiles[0].boundary, 7);
  EXPECT_THAT(profiles[0].rms_quantiles,
              ElementsAre(DoubleNear(0, 1e-6), DoubleNear(1, 1e-6), DoubleNear(5, 1e-6),
                          DoubleNear(10, 1e-6), DoubleNear(15, 1e-6), DoubleNear(19, 1e-6),
                          DoubleNear(20, 1e-6)));
}

}  // namespace
}  // namespace aerie
