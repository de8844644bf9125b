#include "server/checkpoint/rope_config.h"

#include <cmath>
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

struct Read {
  RopeSpec rope;
  Complaints complaints;
};

Read ReadText(const std::string& json, RopeQuestion question = {.width = 8}) {
  Read read;
  const ConfigView config(json, "config.json", read.complaints);
  read.rope = ReadRope(config, question);
  return read;
}

// Yarn with a factor of 8 and more members.
std::string Yarn(const std::string& more) {
  return R"({"rope_scaling":{"type":"yarn","factor":8,"original_max_position_embeddings":32)" +
         more + "}}";
}

struct AmplitudeCase {
  std::string name, members;
  double amplitude;
  std::string source;
};

class YarnAmplitudeTest : public testing::TestWithParam<AmplitudeCase> {};

TEST_P(YarnAmplitudeTest, FollowsThePrecedenceAndSaysWhichRule) {
  const Read read = ReadText(Yarn(GetParam().members));
  EXPECT_THAT(read.complaints.list(), IsEmpty());
  EXPECT_DOUBLE_EQ(read.rope.amplitude.value, GetParam().amplitude);
  EXPECT_THAT(read.rope.amplitude.source, HasSubstr(GetParam().source));
}

const double kLog = std::log(8.0);

INSTANTIATE_TEST_SUITE_P(
    Cases, YarnAmplitudeTest,
    testing::ValuesIn(std::vector<AmplitudeCase>{
        {"TheRule", "", 0.1 * kLog + 1, "rule of yarn"},
        {"TheRatio", R"(,"mscale":1.4,"mscale_all_dim":0.6)", (0.14 * kLog + 1) / (0.06 * kLog + 1),
         "ratio of yarn"},
        {"OneWeightAloneIsNoRatio", R"(,"mscale":1.4)", 0.1 * kLog + 1, "rule of yarn"},
        {"AZeroWeightIsNone", R"(,"mscale":1.4,"mscale_all_dim":0)", 0.1 * kLog + 1,
         "rule of yarn"},
        {"TheValueItselfComesFirst", R"(,"attention_factor":1.3,"mscale":1.4,"mscale_all_dim":0.6)",
         1.3, "config.json: rope_scaling.attention_factor"},
    }),
    [](const auto& test) { return test.param.name; });

TEST(RopeConfigTest, YarnHasDefaultsOfItsOwn) {
  const Read read = ReadText(Yarn(""));
  EXPECT_EQ(read.rope.beta_fast, (Sourced<double>{32.0, "default: of yarn"}));
  EXPECT_EQ(read.rope.beta_slow.value, 1.0);
  EXPECT_TRUE(read.rope.truncate.value);
  EXPECT_FALSE(ReadText(Yarn(R"(,"truncate":false)")).rope.truncate.value);
}

TEST(RopeConfigTest, AnotherMultiplierOfYarnIsRefused) {
  EXPECT_THAT(ReadText(Yarn(R"(,"attn_factor":1.2)")).complaints.list(),
              ElementsAre(SaysWhatWhyAndHow("rope_scaling.attn_factor is 1.2")));
}

TEST(RopeConfigTest, DynamicIsScaledFromTheStatedLength) {
  const Read read = ReadText(
      R"({"max_position_embeddings":16,"rope_scaling":{"rope_type":"dynamic","factor":4}})");
  EXPECT_THAT(read.complaints.list(), IsEmpty());
  EXPECT_EQ(read.rope.type.value, RopeType::kDynamic);
  EXPECT_EQ(read.rope.original_max_positions,
            (Sourced<int32_t>{16, "config.json: max_position_embeddings"}));
  EXPECT_THAT(ReadText(R"({"rope_scaling":{"type":"dynamic","factor":4}})").complaints.list(),
              ElementsAre(SaysWhatWhyAndHow("no max_position_embeddings")));
}

TEST(RopeConfigTest, APartTurnsWhenAPartIsNamed) {
  for (const char* json : {R"({"partial_rotary_factor":0.5})",
                           R"({"rope_parameters":{"partial_rotary_factor":0.5}})"}) {
    const Read read = ReadText(json);
    EXPECT_THAT(read.complaints.list(), IsEmpty());
    EXPECT_EQ(read.rope.dims.value, 4);
  }
  EXPECT_EQ(ReadText("{}").rope.dims.value, 8);
}

TEST(RopeConfigTest, NeighboursTurnTogetherWithLatentAttentionOnly) {
  RopeQuestion latent{.width = 8};
  latent.context.latent = true;
  EXPECT_FALSE(ReadText("{}").rope.interleaved.value);
  EXPECT_TRUE(ReadText("{}", latent).rope.interleaved.value);
  EXPECT_FALSE(ReadText(R"({"rope_interleave":false})", latent).rope.interleaved.value);
  EXPECT_THAT(ReadText(R"({"rope_interleave":true})").complaints.list(),
              ElementsAre(SaysWhatWhyAndHow("rope_interleave = true")));
}

TEST(RopeConfigTest, MropeIsTheDefaultForTextAndWarnedOf) {
  const Read read = ReadText(R"({"rope_scaling":{"type":"mrope","mrope_section":[1,1,2]}})");
  EXPECT_THAT(read.complaints.list(), IsEmpty());
  EXPECT_EQ(read.rope.type.value, RopeType::kDefault);
  EXPECT_THAT(read.complaints.warnings(), ElementsAre(SaysWhatWhyAndHow("is mrope")));
}

TEST(RopeConfigTest, BothSpellingsMaySayTheSame) {
  const Read read = ReadText(
      R"({"rope_theta":5e4,"rope_scaling":{"type":"linear","factor":2},
          "rope_parameters":{"rope_type":"linear","rope_theta":50000,"factor":2.0}})");
  EXPECT_THAT(read.complaints.list(), IsEmpty());
  EXPECT_EQ(read.rope.factor.value, 2.0);
  EXPECT_EQ(read.rope.theta.value, 50000.0);
  EXPECT_THAT(ReadText(R"({"rope_scaling":{"type":"linear","factor":2},
                   "rope_parameters":{"type":"linear","factor":4}})")
                  .complaints.list(),
              ElementsAre(SaysWhatWhyAndHow("rope_parameters.factor is 4")));
}

TEST(RopeConfigTest, TheLayersObjectIsWhereSpeculatorsHasIt) {
  RopeQuestion question{.width = 8};
  question.context.layer = kLayerObject;
  const Read read = ReadText(
      R"({"rope_theta":1,"transformer_layer_config":{"rope_parameters":{"rope_theta":7e5}}})",
      question);
  EXPECT_EQ(
      read.rope.theta,
      (Sourced<double>{7e5, "config.json: transformer_layer_config.rope_parameters.rope_theta"}));
}

TEST(RopeConfigTest, NumbersOutOfRangeAreRefused) {
  for (const char* json :
       {R"({"rope_theta":-1})", R"({"rope_theta":1})", R"({"partial_rotary_factor":0})",
        R"({"partial_rotary_factor":1.5})", R"({"rope_scaling":{"type":"linear","factor":0.5}})",
        R"({"rope_scaling":{"type":"yarn","factor":8,"original_max_position_embeddings":64,
            "mscale":-100,"mscale_all_dim":1}})",
        R"({"rope_scaling":{"type":"linear","factor":-2}})", R"({"rope_scaling":[1]})",
        R"({"rope_scaling":{"type":"llama3","factor":8,"low_freq_factor":4,"high_freq_factor":4,
            "original_max_position_embeddings":64}})",
        R"({"rope_scaling":{"type":"yarn","factor":8,"original_max_position_embeddings":1.5}})",
        R"({"rope_scaling":{"type":"yarn","factor":8,"original_max_position_embeddings":64,
            "beta_fast":1,"beta_slow":2}})"}) {
    EXPECT_FALSE(ReadText(json).complaints.empty()) << json;
  }
}

TEST(LatentScaleFactorTest, IsTheSquareOfYarnsMagnitude) {
  Complaints complaints;
  const ConfigView config(Yarn(R"(,"mscale":1,"mscale_all_dim":1)"), "config.json", complaints);
  ConfigContext context;
  const RopeSpec rope = ReadRope(config, {.width = 8});
  EXPECT_EQ(LatentScaleFactor(config, context, rope).value, 1.0);
  context.latent = true;
  const double magnitude = 0.1 * kLog + 1;
  EXPECT_DOUBLE_EQ(LatentScaleFactor(config, context, rope).value, magnitude * magnitude);
}

}  // namespace
}  // namespace aerie
