#include "server/checkpoint/head_config.h"

#include <functional>
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
using testing::HasSubstr;

absl::StatusOr<Checkpoint> Load(const TinyHead& head, const CheckpointOptions& options = {}) {
  const TemporaryFolder folder;
  head.Write(folder);
  auto checkpoint = LoadCheckpoint(folder.path("head"), folder.path("target"), options);
  return checkpoint;  // keeps its files open beyond the folder
}

TEST(HeadConfigTest, SizesComeFromTheTensorsAndSaySo) {
  const auto checkpoint = Load(TinyHead());
  ASSERT_THAT(checkpoint, IsOk());
  const HeadSpec& spec = checkpoint->spec;
  EXPECT_EQ(spec.hidden_size, (Sourced<int32_t>{12, "tensor fc.weight"}));
  EXPECT_EQ(spec.intermediate_size, (Sourced<int32_t>{20, "tensor midlayer.mlp.gate_proj.weight"}));
  EXPECT_EQ(spec.draft_vocab_size, (Sourced<int32_t>{10, "tensor lm_head.weight"}));
  EXPECT_EQ(spec.num_heads, (Sourced<int32_t>{4, "config.json: num_attention_heads"}));
  EXPECT_EQ(spec.num_kv_heads.value, 2);
  EXPECT_EQ(spec.head_dim.value, 6);
  EXPECT_EQ(spec.vocab_size.value, 40);
  EXPECT_EQ(spec.rms_norm_eps, (Sourced<double>{1e-5, "config.json: rms_norm_eps"}));
  EXPECT_EQ(spec.wiring.value.ToString(), "[2, 6, 9]");
  EXPECT_THAT(spec.wiring.source, HasSubstr("default"));
}

TEST(HeadConfigTest, AnUnsetBaseIsTenThousandAndNotTheTargets) {
  TinyHead head;
  head.SetTarget("rope_theta", "500000.0");
  const auto checkpoint = Load(head);
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_EQ(checkpoint->spec.rope.theta.value, 10000.0);
  EXPECT_THAT(checkpoint->spec.rope.theta.source, HasSubstr("default"));
}

TEST(HeadConfigTest, EverySettingHasASource) {
  const auto checkpoint = Load(TinyHead());
  ASSERT_THAT(checkpoint, IsOk());
  for (const Setting& setting : checkpoint->Settings()) {
    EXPECT_NE(setting.value, "") << setting.name;
    EXPECT_NE(setting.source, "") << setting.name;
  }
  EXPECT_THAT(checkpoint->Settings(),
              Contains(Setting{"norm_before_residual", "false", "default of SpecForge"}));
}

// One change of the sound head, and what has to come of it.
struct HeadCase {
  std::string name;
  std::function<void(TinyHead&)> change;
};

std::string CaseName(const testing::TestParamInfo<HeadCase>& test) { return test.param.name; }

std::function<void(TinyHead&)> Config(std::string key, std::string value) {
  return [key, value](TinyHead& head) { head.Set(key, value); };
}

class AcceptedHeadTest : public testing::TestWithParam<HeadCase> {};

TEST_P(AcceptedHeadTest, Loads) {
  TinyHead head;
  GetParam().change(head);
  EXPECT_THAT(Load(head), IsOk());
}

TensorToWrite Ones(std::string name, std::vector<int64_t> shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return {std::move(name), "F32", std::move(shape), BytesOf(std::vector<float>(count, 1.0f))};
}

INSTANTIATE_TEST_SUITE_P(
    Heads, AcceptedHeadTest,
    testing::ValuesIn(std::vector<HeadCase>{
        {"NullIsAbsent",
         [](TinyHead& h) {
           h.Set("rope_scaling", "null");
           h.Set("head_dim", "null");
           h.Set("draft_vocab_size", "null");
           h.Set("quantization_config", "null");
         }},
        {"PlainLabel", Config("architectures", R"(["LlamaForCausalLM"])")},
        {"WrongLayerCount", Config("num_hidden_layers", "40")},
        {"TiedFlagBesideAMatrix", Config("tie_word_embeddings", "true")},
        {"DefaultRopeType", Config("rope_scaling", R"({"rope_type":"default"})")},
        {"RopeParameters",
         Config("rope_parameters", R"({"rope_type":"default","rope_theta":5000})")},
        {"SameBaseTwice",
         [](TinyHead& h) {
           h.Set("rope_theta", "5000");
           h.Set("rope_parameters", R"({"rope_theta":5000.0})");
         }},
        {"WindowSwitchedOff",
         [](TinyHead& h) {
           h.Set("sliding_window", "4096");
           h.Set("use_sliding_window", "false");
         }},
        {"NoKvHeadsMeansAsManyAsHeads",
         [](TinyHead& h) {
           h.Set("num_key_value_heads", "null");
           const TensorToWrite query = h.Tensor("midlayer.self_attn.q_proj.weight");
           for (const char* name :
                {"midlayer.self_attn.k_proj.weight", "midlayer.self_attn.v_proj.weight"}) {
             h.Tensor(name) = {name, query.type, query.shape, query.bytes};
           }
         }},
        {"NestedIds",
         Config("eagle_config",
                R"({"eagle_aux_hidden_state_layer_ids":[1,5,8],"use_aux_hidden_state":true})")},
        {"TopLevelIds", Config("eagle_aux_hidden_state_layer_ids", "[2,6,9]")},
        {"RotaryBuffer",
         [](TinyHead& h) {
           h.tensors.push_back({"midlayer.self_attn.rotary_emb.inv_freq", "F32", {1}, "1234"});
         }},
        {"NoT2d", [](TinyHead& h) { h.Remove("t2d"); }},
        {"NarrowD2t",
         [](TinyHead& h) {
           std::vector<int32_t> offsets;
           for (const int32_t id : TinyTargetIds())
             offsets.push_back(id - static_cast<int32_t>(offsets.size()));
           h.Tensor("d2t") = {"d2t", "I32", {10}, BytesOf(offsets)};
         }},
        {"NormBeforeResidual", Config("norm_before_residual", "true")},
        {"NormOutput", Config("norm_output", "true")},
        {"LinearRope", Config("rope_scaling", R"({"type":"linear","factor":2.0})")},
        {"OneNormOverAllCaptures",
         [](TinyHead& h) { h.tensors.push_back(Ones("input_norm.weight", {36})); }},
        {"OneNormForEachCapture",
         [](TinyHead& h) {
           h.Set("fc_norm", "true");
           for (const char* name : {"fc_norm.0.weight", "fc_norm.1.weight", "fc_norm.2.weight"}) {
             h.tensors.push_back(Ones(name, {12}));
           }
         }},
        {"OlderNamesOfTheSameNorms",
         [](TinyHead& h) {
           for (const char* name : {"aux_norm_low", "aux_norm_mid", "aux_norm_high"}) {
             h.tensors.push_back(Ones(std::string(name) + ".weight", {12}));
           }
         }},
        {"BiasesOfQueriesKeysAndValues",
         [](TinyHead& h) {
           h.Set("attention_bias", "true");
           h.tensors.push_back(Ones("midlayer.self_attn.q_proj.bias", {24}));
           h.tensors.push_back(Ones("midlayer.self_attn.k_proj.bias", {12}));
           h.tensors.push_back(Ones("midlayer.self_attn.v_proj.bias", {12}));
         }},
        {"NormsOfQueriesAndKeys",
         [](TinyHead& h) {
           h.tensors.push_back(Ones("midlayer.self_attn.q_norm.weight", {6}));
           h.tensors.push_back(Ones("midlayer.self_attn.k_norm.weight", {6}));
         }},
        {"EightBitMatrixWithAScale",
         [](TinyHead& h) {
           h.Tensor("fc.weight") = {"fc.weight", "F8_E4M3", {12, 36}, std::string(432, '\0')};
           h.tensors.push_back(Ones("fc.weight_scale", {12, 1}));
         }},
        {"FullyPrefixed",
         [](TinyHead& h) {
           for (TensorToWrite& tensor : h.tensors) {
             if (tensor.name != "d2t" && tensor.name != "t2d") tensor.name = "model." + tensor.name;
           }
         }},
        {"IgnoredSections",
         Config("rope_scaling",
                R"({"type":"mrope","rope_type":"default","mrope_section":[1,1,1]})")},
        {"OwnEmbedding",
         [](TinyHead& h) {
           h.tensors.push_back(h.target_tensors[0]);
           h.tensors.back().name = "embed_tokens.weight";
           h.target_tensors.clear();
         }},
        {"TargetInsideAWrapper",
         [](TinyHead& h) {
           h.target_config = R"({"text_config":)" + h.target_config + "}";
           h.target_tensors[0].name = "model.language_model.embed_tokens.weight";
         }},
    }),
    CaseName);

struct RefusedCase {
  std::string name;
  std::function<void(TinyHead&)> change;
  std::string seen;
};

class RefusedHeadTest : public testing::TestWithParam<RefusedCase> {};

TEST_P(RefusedHeadTest, SaysWhy) {
  TinyHead head;
  GetParam().change(head);
  const auto checkpoint = Load(head);
  ASSERT_THAT(checkpoint, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(std::string(checkpoint.status().message()), SaysWhatWhyAndHow(GetParam().seen));
}

std::function<void(TinyHead&)> Extra(std::string name) {
  return [name](TinyHead& head) { head.tensors.push_back({name, "F32", {1}, "1234"}); };
}

std::function<void(TinyHead&)> Without(std::string name) {
  return [name](TinyHead& head) { head.Remove(name); };
}

INSTANTIATE_TEST_SUITE_P(
    Flags, RefusedHeadTest,
    testing::ValuesIn(std::vector<RefusedCase>{
        {"NormBeforeFc", Config("norm_before_fc", "true"),
         "norm_before_fc is true but the weights hold no input_norm.weight"},
        {"FcNorm", Config("fc_norm", "true"), "fc_norm is true but the weights hold no fc_norm.0"},
        {"AttentionBias", Config("attention_bias", "true"),
         "attention_bias is true but the weights hold no layers.0.self_attn.q_proj.bias"},
        {"FlagOfAnotherType", Config("attention_bias", "\"no\""), "attention_bias is \"no\""},
        {"Activation", Config("hidden_act", "\"gelu\""), "hidden_act = \"gelu\""},
        {"Quantised", Config("quantization_config", "{}"), "asks for quantised weights ({})"},
        {"NoAuxHiddenState", Config("eagle_config", R"({"use_aux_hidden_state":false})"),
         "the weights hold fc.weight"},
        {"NoAuxHiddenStateAtTheTop", Config("use_aux_hidden_state", "false"),
         "the weights hold fc.weight"},
        {"UnknownKey", Config("residual_gate", "0.5"), "residual_gate = 0.5 is a key"},
        {"UnknownEagleKey", Config("eagle_config", R"({"warp":7})"),
         "eagle_config.warp = 7 is a key"},
        {"LinearRopeWithoutAFactor", Config("rope_scaling", R"({"type":"linear"})"),
         "no rope_scaling.factor"},
        {"YarnWithoutALength", Config("rope_parameters", R"({"rope_type":"yarn","factor":4})"),
         "no rope_scaling.original_max_position_embeddings"},
        {"UnknownRope", Config("rope_scaling", R"({"type":"longrope"})"), "\"longrope\""},
        {"TwoRopes",
         [](TinyHead& h) {
           h.Set("rope_scaling", R"({"type":"linear","factor":2})");
           h.Set("rope_parameters", R"({"rope_type":"default"})");
         },
         "rope_parameters.rope_type is \"default\""},
        {"FactorWithoutAType", Config("rope_scaling", R"({"factor":8.0})"),
         "rope_scaling.factor = 8.0"},
        {"Sections", Config("rope_scaling", R"({"type":"default","mrope_section":[1,1,2]})"),
         "mrope_section is [1,1,2] and sums up to 4"},
        {"TwoBases",
         [](TinyHead& h) {
           h.Set("rope_theta", "5000");
           h.Set("rope_parameters", R"({"rope_theta":6000})");
         },
         "rope_parameters.rope_theta is 6000"},
        {"BaseOfZero", Config("rope_theta", "0"), "rope_theta is 0"},
        {"BaseIsNoNumber", Config("rope_theta", "\"many\""), "rope_theta is \"many\""},
        {"PartialRotation", Config("partial_rotary_factor", "0.5"),
         "partial_rotary_factor is 0.5, 3 of 6"},
        {"Window", Config("sliding_window", "4096"), "sliding_window = 4096"},
        {"LatentAttention", Config("kv_lora_rank", "512"),
         "kv_lora_rank is 512 but the weights hold no"},
        {"Speculators", Config("transformer_layer_config", "{}"),
         "no transformer_layer_config.num_attention_heads"},
        {"Parallel", Config("mask_token_id", "7"), "drafting in parallel"},
        {"LogitScale", Config("logit_scale", "0.25"), "logit_scale = 0.25"},
        {"Epsilon", Config("rms_norm_eps", "-1e-5"), "rms_norm_eps is"},
        {"ConfigIsNoObject", [](TinyHead& h) { h.config = "[1]"; },
         "config.json: the JSON is no object"},
        {"KeyTwice", [](TinyHead& h) { h.config.insert(1, "\"hidden_size\":12,"); },
         "\"hidden_size\" stands twice"},
    }),
    [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Tensors, RefusedHeadTest,
    testing::ValuesIn(std::vector<RefusedCase>{
        {"OtherFamily", Extra("layers.0.hidden_norm.weight"), "mixes the spellings \"layers.N.\""},
        {"ModelPrefix", Extra("model.fc.weight"), "are both fc.weight"},
        {"SeveralLayers", Extra("midlayer.1.hidden_norm.weight"), "\"midlayer.N.\""},
        {"OneOfTwoNorms", Extra("midlayer.self_attn.q_norm.weight"),
         "the weights lack layers.0.self_attn.k_norm.weight"},
        {"OneOfThreeBiases", Extra("midlayer.self_attn.q_proj.bias"),
         "the weights lack layers.0.self_attn.k_proj.bias"},
        {"OneOfThreeFcNorms", Extra("fc_norm.0.weight"),
         "the weights lack fc_norm.1.weight, fc_norm.2.weight"},
        {"InputNormOfAnotherWidth", Extra("input_norm.weight"), "input_norm.weight is F32 [1]"},
        {"MaskHidden", Extra("mask_hidden"), "drafts in parallel"},
        {"Projection", Extra("midlayer.eh_proj.weight"), "a projection in front"},
        {"Experts", Extra("midlayer.mlp.experts.0.up_proj.weight"), "an MLP of experts"},
        {"HalfLatent",
         [](TinyHead& h) {
           h.tensors.push_back(
               {"midlayer.self_attn.kv_a_proj_with_mqa.weight", "F32", {1, 1}, "1234"});
         },
         "the weights lack layers.0.self_attn.kv_a_layernorm.weight"},
        {"ScaleOfAFloat", Extra("fc.weight_scale"), "the scale of F32 [12, 36]"},
        {"ScaleOfNothing", Extra("midlayer.self_attn.q_a_proj.weight_scale"),
         "the scale of a weight that is not there"},
        {"FourBits", Extra("midlayer.mlp.up_proj.qweight"), "4-bit weights"},
        {"Unknown", Extra("surprise"), "tensor \"surprise\" is unknown"},
        {"NoOutputMatrix", Without("lm_head.weight"), "by a missing lm_head.weight"},
        {"NoFc", Without("fc.weight"), "the weights lack fc.weight"},
        {"NoMap", Without("d2t"), "has no d2t"},
        {"EightBitMatrix",
         [](TinyHead& h) {
           h.Tensor("fc.weight") = {"fc.weight", "F8_E4M3", {12, 36}, std::string(432, '\0')};
         },
         "tensor fc.weight is F8_E4M3 [12, 36]"},
        {"FloatMap", [](TinyHead& h) { h.Tensor("d2t").type = "F64"; }, "tensor d2t is F64 [10]"},
        {"NormOfTwoDimensions",
         [](TinyHead& h) {
           h.Tensor("norm.weight").shape = {1, 12};
         },
         "tensor norm.weight is F32 [1, 12]"},
        {"TransposedMatrix",
         [](TinyHead& h) {
           h.Tensor("midlayer.mlp.down_proj.weight").shape = {20, 12};
         },
         "tensor midlayer.mlp.down_proj.weight is F32 [20, 12]"},
        {"AbsoluteMap",
         [](TinyHead& h) {
           h.SetD2t({0, 1, 3, 4, 9, 17, 18, 25, 38, 39});
         },
         "which t2d leaves out"},
    }),
    [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Sizes, RefusedHeadTest,
    testing::ValuesIn(std::vector<RefusedCase>{
        {"HiddenSize", Config("hidden_size", "16"), "hidden_size is 16"},
        {"TargetHiddenSize", Config("target_hidden_size", "16"), "target_hidden_size is 16"},
        {"IntermediateSize", Config("intermediate_size", "24"), "intermediate_size is 24"},
        {"HeadDim", Config("head_dim", "3"), "head_dim is 3"},
        {"Heads", Config("num_attention_heads", "5"), "5 attention heads share"},
        {"NoHeads", Config("num_attention_heads", "null"), "no num_attention_heads"},
        {"NegativeHeads", Config("num_attention_heads", "-4"), "num_attention_heads is -4"},
        {"KvHeadsThatDoNotDivide", Config("num_key_value_heads", "3"), "share 3 key heads"},
        {"KvHeads", Config("num_key_value_heads", "1"), "k_proj.weight is F32 [12, 24]"},
        {"Vocab", Config("vocab_size", "41"), "vocab_size is 41"},
        {"DraftVocab", Config("draft_vocab_size", "9"),
         "10 tokens by lm_head.weight, 9 by config.json, 10 by d2t, 10 by t2d"},
        {"FewerInT2d",
         [](TinyHead& h) {
           h.SetT2d({0, 1, 3, 4, 9, 17, 18, 25, 38});
         },
         "9 by t2d"},
        {"LongerD2t", [](TinyHead& h) { h.SetD2t(std::vector<int64_t>(11, 0)); }, "11 by d2t"},
        {"LayerIds", Config("eagle_aux_hidden_state_layer_ids", "[3,6,9]"),
         "may mean boundaries [3, 6, 9]"},
        {"TwoListsOfIds",
         [](TinyHead& h) {
           h.Set("eagle_aux_hidden_state_layer_ids", "[2,6,9]");
           h.Set("aux_hidden_states_layer_ids", "[1,5,8]");
         },
         "aux_hidden_states_layer_ids is [1,5,8]"},
        {"CaptureCount", Config("num_aux_hidden_states", "4"), "num_aux_hidden_states is 4"},
        {"OtherTarget", [](TinyHead& h) { h.SetTarget("hidden_size", "24"); },
         "the head is 12 wide"},
        {"FcOfAFraction", [](TinyHead& h) { h.SetTarget("hidden_size", "7"); },
         "tensor fc.weight has 36 columns"},
        {"TargetWithoutLayers", [](TinyHead& h) { h.SetTarget("num_hidden_layers", "null"); },
         "num_hidden_layers null"},
    }),
    [](const auto& test) { return test.param.name; });

TEST(HeadConfigTest, CapturesThatFcDoesNotTakeAreRefused) {
  TinyHead head;
  head.Set("eagle_aux_hidden_state_layer_ids", "[2,4,6,9]");
  const auto checkpoint = Load(head, {.head = {.layer_ids = LayerIdConvention::kInputOfLayer}});
  ASSERT_THAT(checkpoint, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(std::string(checkpoint.status().message()),
              SaysWhatWhyAndHow("fc.weight takes 3 captures"));
}

TEST(HeadConfigTest, TheFlagDecidesWhatLayerIdsMean) {
  TinyHead head;
  head.Set("eagle_aux_hidden_state_layer_ids", "[3,6,9]");
  const auto checkpoint = Load(head, {.head = {.layer_ids = LayerIdConvention::kOutputOfLayer}});
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_EQ(checkpoint->spec.wiring.value.ToString(), "[4, 7, 10]");
}

}  // namespace
}  // namespace aerie
