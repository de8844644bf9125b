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
  WiringQuestion question{.ids = c.ids, .key = "ids", .flag = c.flag};
  question.num_layers = c.layers;
  const Sourced<Wiring> wiring = ResolveWiring(question, complaints).wiring;
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
        {"TheFlagReadsAsInput",
         30,
         {{3, 15, 27}},
         kInput,
         "[3, 15, 27]",
         "flag --layer-id-convention"},
        {"TheFlagReadsAsOutput",
         30,
         {{3, 15, 27}},
         kOutput,
         "[4, 16, 28]",
         "flag --layer-id-convention"},
        {"TheFlagBeatsTheStandardList",
         30,
         {{1, 14, 26}},
         kInput,
         "[1, 14, 26]",
         "flag --layer-id-convention"},
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
  const WiringAnswer answer = ResolveWiring(
      {.ids = {{3, 15, 27}}, .key = "eagle_config.ids", .num_layers = 30}, complaints);
  EXPECT_THAT(complaints.list(),
              ElementsAre(SaysWhatWhyAndHow("eagle_config.ids [3, 15, 27] may mean")));
  EXPECT_THAT(complaints.list()[0], HasSubstr("--layer-id-convention=output-of-layer"));
  EXPECT_THAT(complaints.list()[0], HasSubstr("aerie-verify"));
  EXPECT_EQ(answer.claim.certainty, WiringCertainty::kAmbiguous);
}

TEST(ResolveWiringTest, SaysHowCertainItIs) {
  Complaints complaints;
  const auto certainty = [&](const WiringQuestion& question) {
    return ResolveWiring(question, complaints).claim.certainty;
  };
  EXPECT_EQ(certainty({.ids = {{1, 14, 26}}, .num_layers = 30}),
            WiringCertainty::kByDefaultPattern);
  EXPECT_EQ(certainty({.num_layers = 30}), WiringCertainty::kByDefaultPattern);
  EXPECT_EQ(certainty({.ids = {{3, 15, 27}}, .flag = kInput, .num_layers = 30}),
            WiringCertainty::kDeclaredByFlag);
  EXPECT_EQ(certainty({.ids = {{3, 15, 27}}, .producer = kInput, .num_layers = 30}),
            WiringCertainty::kCertain);
  EXPECT_THAT(complaints.list(), IsEmpty());
}

TEST(ResolveWiringTest, AProducerWithOneReadingNeedsNoFlag) {
  Complaints complaints;
  const WiringAnswer answer = ResolveWiring(
      {.ids = {{3, 15, 27}}, .producer = kInput, .producer_name = "speculators", .num_layers = 30},
      complaints);
  EXPECT_EQ(answer.wiring.value.ToString(), "[3, 15, 27]");
  EXPECT_THAT(answer.wiring.source, HasSubstr("as speculators does"));
  EXPECT_THAT(complaints.list(), IsEmpty());
  EXPECT_THAT(complaints.warnings(), IsEmpty());
}

TEST(ResolveWiringTest, AConvertedListInABoundaryFieldIsWarnedOf) {
  Complaints complaints;
  const WiringAnswer answer = ResolveWiring(
      {.ids = {{1, 14, 26}}, .producer = kInput, .producer_name = "speculators", .num_layers = 30},
      complaints);
  EXPECT_EQ(answer.wiring.value.ToString(), "[1, 14, 26]");
  EXPECT_THAT(complaints.warnings(), ElementsAre(SaysWhatWhyAndHow("[1, 14, 26]")));
}

TEST(ResolveWiringTest, AMeasuredWiringBeatsTheListAndAFlagBeatsBoth) {
  Complaints complaints;
  WiringQuestion question{.ids = {{1, 14, 26}}, .num_layers = 30};
  question.measured = {{Capture::Boundary(4), Capture::Boundary(9)}, "wiring.json"};
  EXPECT_EQ(ResolveWiring(question, complaints).wiring,
            (Sourced<Wiring>{*Wiring::Create({Capture::Boundary(4), Capture::Boundary(9)}, 30),
                             "measured: wiring.json"}));
  question.flag = kInput;
  EXPECT_EQ(ResolveWiring(question, complaints).wiring.value.ToString(), "[1, 14, 26]");
  EXPECT_THAT(complaints.list(), IsEmpty());
}

TEST(ResolveWiringTest, WithoutATargetWhatHangsOnItIsLeftOpen) {
  Complaints complaints;
  const WiringAnswer open = ResolveWiring({.ids = {{2, 15, 27}}}, complaints);
  EXPECT_EQ(open.wiring.value.size(), 0);
  EXPECT_EQ(open.claim.certainty, WiringCertainty::kAmbiguous);
  EXPECT_EQ(
      ResolveWiring({.ids = {{3, 15, 27}}, .producer = kInput}, complaints).wiring.value.ToString(),
      "[3, 15, 27]");
  EXPECT_THAT(complaints.list(), IsEmpty());
}

}  // namespace
}  // namespace aerie
