#include "server/checkpoint/config_keys.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/checkpoint/checkpoint.h"
#include "tests/server/checkpoint/three_parts.h"
#include "tests/server/checkpoint/tiny_head.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> ComplaintsOf(const std::string& json, const ConfigContext& context = {}) {
  Complaints complaints;
  const ConfigView config(json, "config.json", complaints);
  CheckConfigKeys(config, context);
  return complaints.list();
}

TEST(ConfigKeysTest, KeysThatChangeNothingPass) {
  EXPECT_THAT(ComplaintsOf(R"({"architectures":["LlamaForCausalLMEagle3"],"eos_token_id":[1,2],
                               "torch_dtype":"bfloat16","use_cache":true,"n_routed_experts":8,
                               "hidden_act":"silu","logit_scale":1.0,"mask_token_id":null})"),
              IsEmpty());
}

TEST(ConfigKeysTest, AnUnknownKeyNamesItselfAndTheWayAround) {
  const auto complaints = ComplaintsOf(R"({"residual_gate":0.5})");
  ASSERT_THAT(complaints, ElementsAre(SaysWhatWhyAndHow("config.json: residual_gate = 0.5")));
  EXPECT_THAT(complaints[0], HasSubstr("--ignore-config-key=residual_gate"));
}

TEST(ConfigKeysTest, UnknownKeysInsideObjectsAreFoundToo) {
  const ConfigContext context{.layer = kLayerObject};
  EXPECT_THAT(ComplaintsOf(R"({"eagle_config":{"warp":7},
                               "transformer_layer_config":{"residual_gate":0.5}})",
                           context),
              ElementsAre(SaysWhatWhyAndHow("transformer_layer_config.residual_gate = 0.5"),
                          SaysWhatWhyAndHow("eagle_config.warp = 7")));
}

TEST(ConfigKeysTest, ALayerKeyBesideTheLayersObjectMustRepeatIt) {
  const ConfigContext context{.layer = kLayerObject};
  EXPECT_THAT(
      ComplaintsOf(R"({"rope_theta":1e4,"transformer_layer_config":{"rope_theta":1e4}})", context),
      IsEmpty());
  EXPECT_THAT(
      ComplaintsOf(R"({"rope_theta":5e5,"transformer_layer_config":{"rope_theta":1e4}})", context),
      ElementsAre(SaysWhatWhyAndHow("rope_theta is 500000.0 but transformer_layer_config")));
}

TEST(ConfigKeysTest, AnotherKindOfDrafterIsRefusedByName) {
  EXPECT_THAT(ComplaintsOf(R"({"speculators_model_type":"peagle"})"),
              ElementsAre(SaysWhatWhyAndHow("speculators_model_type = \"peagle\"")));
  EXPECT_THAT(ComplaintsOf(R"({"architectures":["PEagleDraftModel"]})"),
              ElementsAre(SaysWhatWhyAndHow("P-EAGLE")));
  EXPECT_THAT(ComplaintsOf(R"({"dflash_config":{"a":1}})"),
              ElementsAre(SaysWhatWhyAndHow("DFlash")));
}

TEST(ConfigKeysTest, LaterLayersMustBeOrdinary) {
  const std::string json = R"({"eagle_config":{"next_layer_regular":false}})";
  EXPECT_THAT(ComplaintsOf(json), IsEmpty());
  EXPECT_THAT(ComplaintsOf(json, {.num_layers = 2}),
              ElementsAre(SaysWhatWhyAndHow("next_layer_regular = false")));
}

TEST(ConfigKeysTest, AnIgnoredKeyIsAbsentAndShown) {
  const TemporaryFolder folder;
  TinyHead head;
  head.Set("residual_gate", "0.5");
  head.Set("eagle_config", R"({"warp":7})");
  head.Write(folder);
  CheckpointOptions options;
  options.head.ignored_config_keys = {"residual_gate", "eagle_config.warp"};
  const auto checkpoint = LoadCheckpoint(folder.path("head"), folder.path("target"), options);
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_THAT(checkpoint->Settings(),
              Contains(Setting{"ignored_config_keys", "residual_gate, eagle_config.warp",
                               "flag --ignore-config-key"}));
  options.head.ignored_config_keys.push_back("gate");
  EXPECT_THAT(LoadCheckpoint(folder.path("head"), folder.path("target"), options)->warnings,
              Contains(SaysWhatWhyAndHow("no key gate")));
}

}  // namespace
}  // namespace aerie
