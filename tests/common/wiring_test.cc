#include "common/wiring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace aerie {
namespace {

using ::testing::HasSubstr;
using ::testing::ValuesIn;

struct LayerIdCase {
  std::string name;
  std::vector<int32_t> ids;
  LayerIdConvention convention;
  int32_t num_layers;
  std::string wiring;  // or the words of the refusal
  bool ok = true;
};

class WiringFromLayerIdsTest : public ::testing::TestWithParam<LayerIdCase> {};

TEST_P(WiringFromLayerIdsTest, GivesBoundariesInTheOrderOfTheIds) {
  const LayerIdCase& test = GetParam();
  const auto wiring = Wiring::FromLayerIds(test.ids, test.convention, test.num_layers);
  if (test.ok) {
    ASSERT_TRUE(wiring.ok()) << wiring.status();
    EXPECT_EQ(wiring->ToString(), test.wiring);
  } else {
    ASSERT_EQ(wiring.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(wiring.status().message()), HasSubstr(test.wiring));
  }
}

constexpr auto kInput = LayerIdConvention::kInputOfLayer;
constexpr auto kOutput = LayerIdConvention::kOutputOfLayer;

INSTANTIATE_TEST_SUITE_P(
    Cases, WiringFromLayerIdsTest,
    ValuesIn(std::vector<LayerIdCase>{
        {"OutputIdsMoveUpByOne", {2, 30, 58}, kOutput, 61, "[3, 31, 59]"},
        {"InputIdsStay", {2, 30, 58}, kInput, 61, "[2, 30, 58]"},
        {"OrderIsKept", {58, 2, 30}, kInput, 61, "[58, 2, 30]"},
        {"InputOfNoLayerIsTheLastOutput", {61}, kInput, 61, "[61]"},
        {"LastLayersOutput", {60}, kOutput, 61, "[61]"},
        {"OutputPastTheLastLayer", {61}, kOutput, 61, "layer id 61 leaves", false},
        {"Negative", {-1, 2, 30}, kInput, 61, "layer id -1 leaves", false},
        {"Repeated", {2, 30, 2}, kInput, 61, "captures 0 and 2 are both boundary 2", false},
        {"Empty", {}, kInput, 61, "empty", false},
    }),
    [](const auto& test) { return test.param.name; });

TEST(WiringTest, AFinalNormIsAnotherPlaceThanTheLastBoundary) {
  const auto wiring = Wiring::Create({Capture::Boundary(30), Capture::FinalNorm()}, 30);
  ASSERT_TRUE(wiring.ok()) << wiring.status();
  EXPECT_EQ(wiring->ToString(), "[30, final_norm]");
}

TEST(WiringTest, OrderMatters) {
  EXPECT_NE(*Wiring::Create({Capture::Boundary(2), Capture::Boundary(15)}, 30),
            *Wiring::Create({Capture::Boundary(15), Capture::Boundary(2)}, 30));
}

}  // namespace
}  // namespace aerie
