#include "server/checkpoint/layer_ids.h"

#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/checkpoint/three_parts.h"

namespace aerie {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr auto kInput = LayerIdConvention::kInputOfLayer;
constexpr auto kOutput = LayerIdConvention::kOutputOfLayer;

struct LayerIdCase {
  std::string name;
  int32_t layers;
  std::optional<std::vector<int32_t>> ids;
  std::optional<LayerIdConvention> flag;
  std::string boundaries;  // empty: refused
  std::string told;        // in the source, or in the complaint
};

class ResolveWiringTest : public testing::TestWithParam<LayerIdCase> {};

TEST_P(ResolveWiringTest, ReadsOrRefuses) {
  const LayerIdCase& c = GetParam();
  Complaints complaints;
  const auto wiring = ResolveWiring(c.ids, "ids", c.flag, c.layers, complaints);
  if (c.boundaries.empty()) {
    ASSERT_EQ(complaints.list().size(), 1);
    EXPECT_THAT(complaints.list()[0], HasSubstr(c.told));
    EXPECT_EQ(wiring.value.size(), 0);
  } else {
    EXPECT_THAT(complaints.list(), IsEmpty());
    EXPECT_EQ(wiring.value.ToString(), c.boundaries);
    EXPECT_THAT(wiring.source, HasSubstr(c.told));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, ResolveWiringTest,
    testing::ValuesIn(std::vector<LayerIdCase>{
        {"AbsentIsTheDefault", 30, std::nullopt, {}, "[2, 15, 27]", "default"},
        {"AbsentIsTheDefaultWhateverTheFlag", 30, std::nullopt, kOutput, "[2, 15, 27]", "default"},
        {"TheStandardOutputList", 30, {{1, 14, 26}}, {}, "[2, 15, 27]", "output-of-layer"},
        {"TheStandardInputList", 30, {{2, 15, 27}}, {}, "[2, 15, 27]", "input-of-layer"},
        {"OddLayersRoundDown", 61, {{1, 29, 57}}, {}, "[2, 30, 58]", "output-of-layer"},
        {"AnotherListNeedsTheFlag", 30, {{3, 15, 27}}, {}, "", "boundaries [3, 15, 27]"},
        {"BothReadingsAreNamed", 30, {{3, 15, 27}}, {}, "", "[4, 16, 28]"},
        {"TheFlagReadsAsInput", 30, {{3, 15, 27}}, kInput, "[3, 15, 27]", "flag --layer-ids"},
        {"TheFlagReadsAsOutput", 30, {{3, 15, 27}}, kOutput, "[4, 16, 28]", "flag --layer-ids"},
        {"TheFlagBeatsTheStandardList",
         30,
         {{1, 14, 26}},
         kInput,
         "[1, 14, 26]",
         "flag --layer-ids"},
        {"MoreThanThreeWithTheFlag", 30, {{1, 7, 14, 26}}, kInput, "[1, 7, 14, 26]", "flag"},
        {"TheLastBoundaryIsLegal", 30, {{10, 20, 30}}, kInput, "[10, 20, 30]", "flag"},
        {"PastTheLastLayer", 30, {{10, 20, 30}}, kOutput, "", "impossible"},
        {"NegativeIds", 30, {{-2, 20, 29}}, kOutput, "", "impossible"},
        {"Descending", 30, {{26, 14, 1}}, kOutput, "", "ascending"},
        {"Empty", 30, std::vector<int32_t>{}, kOutput, "", "impossible"},
        {"DefaultsOfATinyTargetCollide", 4, std::nullopt, {}, "", "default"},
    }),
    [](const auto& test) { return test.param.name; });

TEST(ResolveWiringTest, AnAmbiguousListSaysWhatToDo) {
  Complaints complaints;
  ResolveWiring({{3, 15, 27}}, "eagle_config.ids", std::nullopt, 30, complaints);
  EXPECT_THAT(complaints.list(),
              ElementsAre(SaysWhatWhyAndHow("eagle_config.ids [3, 15, 27] may mean")));
  EXPECT_THAT(complaints.list()[0], HasSubstr("--layer-ids=output-of-layer"));
}

}  // namespace
}  // namespace aerie
