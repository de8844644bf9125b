// What people met when they loaded heads, each as a test: A1 to A24.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/checkpoint/checkpoint.h"
#include "tests/server/checkpoint/three_parts.h"
#include "tests/server/checkpoint/tiny_head.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using testing::Contains;
using testing::ElementsAreArray;
using testing::HasSubstr;

absl::StatusOr<Checkpoint> Load(const TinyHead& head, const CheckpointOptions& options = {}) {
  const TemporaryFolder folder;
  head.Write(folder);
  return LoadCheckpoint(folder.path("head"), folder.path("target"), options);
}

// What a refusal says; fails the test when there is none.
std::string Refusal(const TinyHead& head, const CheckpointOptions& options = {}) {
  const auto checkpoint = Load(head, options);
  EXPECT_THAT(checkpoint, StatusIs(absl::StatusCode::kFailedPrecondition));
  return std::string(checkpoint.status().message());
}

TensorToWrite Floats(std::string name, std::vector<int64_t> shape, uint32_t seed = 50) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return {std::move(name), "F32", std::move(shape), BytesOf(Noise(count, seed))};
}

void Replace(TinyHead& head, const std::string& name, std::vector<int64_t> shape) {
  head.Tensor(name) = Floats(name, std::move(shape));
}

void FullVocabulary(TinyHead& head) {
  head.Remove("d2t");
  head.Remove("t2d");
  head.Set("draft_vocab_size", "null");
  Replace(head, "lm_head.weight", {TinyHead::kVocab, TinyHead::kHidden});
}

TEST(FieldReport, A1_AHeadWithoutAnOutputMatrixIsRefusedUnlessTheTargetsFits) {
  TinyHead head;
  head.Remove("lm_head.weight");
  EXPECT_THAT(Refusal(head), SaysWhatWhyAndHow("a missing lm_head.weight"));

  TinyHead whole;
  FullVocabulary(whole);
  whole.Remove("lm_head.weight");
  EXPECT_THAT(Refusal(whole), SaysWhatWhyAndHow("0 tensors named *.lm_head.weight"));
  whole.target_tensors.push_back(Floats("lm_head.weight", {40, 12}));
  const auto checkpoint = Load(whole);
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_EQ(checkpoint->output_source, "target's tensor lm_head.weight");
  EXPECT_EQ(checkpoint->tensors.at(HeadTensor::kOutput).bytes, whole.target_tensors.back().bytes);
}

TEST(FieldReport, A1_ATargetThatTiesItsMatricesLendsItsEmbeddingAsOutput) {
  TinyHead head;
  FullVocabulary(head);
  head.Remove("lm_head.weight");
  head.SetTarget("tie_word_embeddings", "true");
  const auto checkpoint = Load(head);
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_THAT(checkpoint->output_source, HasSubstr("ties its output"));
}

TinyHead NarrowerThanItsTarget() {
  TinyHead head;
  head.SetTarget("hidden_size", "20");
  head.target_tensors[0] = Floats("model.embed_tokens.weight", {40, 20});
  Replace(head, "fc.weight", {12, 60});
  head.tensors.push_back(Floats("embed_tokens.weight", {40, 12}));
  return head;
}

TEST(FieldReport, A2_AHeadNarrowerThanItsTargetBringsItsOwnEmbedding) {
  TinyHead head = NarrowerThanItsTarget();
  head.Set("target_hidden_size", "20");
  const auto checkpoint = Load(head);
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_EQ(checkpoint->spec.hidden_size.value, 12);
  EXPECT_EQ(checkpoint->spec.target_hidden_size.value, 20);
  EXPECT_EQ(checkpoint->spec.num_captures.value, 3);
  EXPECT_EQ(checkpoint->embedding.Describe(), "F32 [40, 12]");
  head.Remove("embed_tokens.weight");
  EXPECT_THAT(Refusal(head), SaysWhatWhyAndHow("has no embed_tokens.weight of its own"));
}

TEST(FieldReport, A3_IdsAreMappedToTheTargets) {
  const auto checkpoint = Load(TinyHead());
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_THAT(checkpoint->draft_to_target, ElementsAreArray(TinyTargetIds()));
}

TEST(FieldReport, A4_AReducedVocabularyWithoutAMapIsRefused) {
  TinyHead head;
  head.Remove("d2t");
  EXPECT_THAT(Refusal(head), SaysWhatWhyAndHow("10 tokens of the target's 40 and has no d2t"));
}

TEST(FieldReport, A5_AbsoluteD2tIsExplained) {
  TinyHead head;
  const std::vector<int32_t> ids = TinyTargetIds();
  head.SetD2t(std::vector<int64_t>(ids.begin(), ids.end()));
  const std::string refusal = Refusal(head);
  EXPECT_THAT(refusal, SaysWhatWhyAndHow("which t2d leaves out"));
  EXPECT_THAT(refusal, HasSubstr("d2t looks like a list of absolute target ids"));
}

TEST(FieldReport, A5_ARepeatedOrOutlyingIdIsRefused) {
  TinyHead head;
  head.Remove("t2d");
  head.SetD2t({0, 0, 1, 1, 5, 12, 11, 12, 31, 31});
  EXPECT_THAT(Refusal(head), SaysWhatWhyAndHow("map to target ids"));
  head.SetD2t({0, 0, 1, 1, 5, 12, 12, 18, 30, 31});
  EXPECT_THAT(Refusal(head), SaysWhatWhyAndHow("leads outside the target's 0..39"));
}

TEST(FieldReport, A6_FourSizesOfTheDraftVocabularyAreToldTogether) {
  TinyHead head;
  head.Set("draft_vocab_size", "16");
  head.SetD2t({0, 0, 1, 1, 5, 12, 12, 18, 30});
  head.SetT2d({0, 1, 3});
  EXPECT_THAT(Refusal(head),
              SaysWhatWhyAndHow("10 tokens by lm_head.weight, 16 by config.json, 9 by d2t, 3 by "
                                "t2d, of the target's 40"));
}

TEST(FieldReport, A7_NullIsAbsentAndWhatIsDerivedSaysSo) {
  TinyHead head;
  for (const char* key : {"draft_vocab_size", "head_dim", "hidden_size", "rope_scaling",
                          "rope_theta", "eagle_config", "target_hidden_size"}) {
    head.Set(key, "null");
  }
  const auto checkpoint = Load(head);
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_THAT(checkpoint->spec.num_captures.source, HasSubstr("fc.weight"));
  EXPECT_EQ(checkpoint->spec.draft_vocab_size.source, "tensor lm_head.weight");
  EXPECT_THAT(checkpoint->spec.rope.theta.source, HasSubstr("default: 10000"));
}

TEST(FieldReport, A8_TheTensorsDecideAndTheLabelIsMentioned) {
  TinyHead head;
  head.Set("architectures", R"(["Qwen3ForCausalLM"])");
  head.Set("model_type", "\"qwen3\"");
  const auto checkpoint = Load(head);
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_THAT(checkpoint->warnings, Contains(SaysWhatWhyAndHow("Qwen3ForCausalLM")));
}

TEST(FieldReport, A9_EverySpellingIsReadAndMixturesAreRefused) {
  for (const char* spelling : {"layers.0.", "model.layers.0.", "midlayer.0.", "model.midlayer."}) {
    TinyHead head;
    for (TensorToWrite& tensor : head.tensors) {
      if (tensor.name.starts_with("midlayer.")) tensor.name = spelling + tensor.name.substr(9);
    }
    EXPECT_THAT(Load(head), IsOk()) << spelling;
  }
  TinyHead mixed;
  mixed.Tensor("midlayer.mlp.up_proj.weight").name = "layers.0.mlp.up_proj.weight";
  EXPECT_THAT(Refusal(mixed), SaysWhatWhyAndHow("mixes the spellings"));
}

TEST(FieldReport, A9_AFileThatIsNoEagleHeadIsCalledSo) {
  TinyHead head;
  head.Remove("fc.weight");
  head.Remove("midlayer.hidden_norm.weight");
  EXPECT_THAT(Refusal(head), HasSubstr("this is no EAGLE-3 head"));
}

// A second layer, an ordinary one, whose norm in front of the attention has the given name.
void AddLayer(TinyHead& head, const std::string& norm) {
  for (TensorToWrite& tensor : head.tensors) {
    if (tensor.name.starts_with("midlayer.")) tensor.name = "layers.0." + tensor.name.substr(9);
  }
  const std::string at = "layers.1.";
  const std::vector<TensorToWrite> layer = {
      Floats(at + norm + ".weight", {12}),
      Floats(at + "self_attn.q_proj.weight", {24, 12}),
      Floats(at + "self_attn.k_proj.weight", {12, 12}),
      Floats(at + "self_attn.v_proj.weight", {12, 12}),
      Floats(at + "self_attn.o_proj.weight", {12, 24}),
      Floats(at + "post_attention_layernorm.weight", {12}),
      Floats(at + "mlp.gate_proj.weight", {20, 12}),
      Floats(at + "mlp.up_proj.weight", {20, 12}),
      Floats(at + "mlp.down_proj.weight", {12, 20}),
  };
  head.tensors.insert(head.tensors.end(), layer.begin(), layer.end());
}

TEST(FieldReport, A10_LayersAreCountedInTheFileAndNoneIsIgnored) {
  for (const char* norm : {"input_layernorm", "hidden_norm"}) {
    TinyHead head;
    AddLayer(head, norm);
    head.Set("num_hidden_layers", "40");
    const auto checkpoint = Load(head);
    ASSERT_THAT(checkpoint, IsOk()) << norm;
    EXPECT_EQ(checkpoint->spec.num_layers.value, 2);
    EXPECT_THAT(checkpoint->warnings, Contains(SaysWhatWhyAndHow("is 40 but the file holds 2")));
    EXPECT_EQ(checkpoint->tensors.at({HeadTensor::kInputNorm, 1}).Describe(), "F32 [12]");
    EXPECT_EQ(checkpoint->tensors.at({HeadTensor::kQuery, 1}).Describe(), "F32 [24, 12]");
  }
  TinyHead gap;
  AddLayer(gap, "input_layernorm");
  for (TensorToWrite& tensor : gap.tensors) {
    if (tensor.name.starts_with("layers.1.")) tensor.name[7] = '2';
  }
  EXPECT_THAT(Refusal(gap), SaysWhatWhyAndHow("the file has layers 0, 2"));
}

TEST(FieldReport, A11_AnOutputMatrixInTheFileBeatsTheTieFlag) {
  TinyHead head;
  head.Set("tie_word_embeddings", "true");
  const auto checkpoint = Load(head);
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_EQ(checkpoint->output_source, "tensor lm_head.weight");
  EXPECT_THAT(checkpoint->warnings, Contains(SaysWhatWhyAndHow("tie_word_embeddings is true")));
}

TEST(FieldReport, A11_TyingNeedsEqualSizes) {
  TinyHead head;
  head.Set("tie_word_embeddings", "true");
  head.tensors.push_back(Floats("embed_tokens.weight", {40, 12}));
  head.Remove("lm_head.weight");
  EXPECT_THAT(Refusal(head), SaysWhatWhyAndHow("a missing lm_head.weight"));
  head.Remove("d2t");
  head.Remove("t2d");
  head.Set("draft_vocab_size", "40");
  const auto checkpoint = Load(head);
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_EQ(checkpoint->tensors.at(HeadTensor::kOutput).name, "embed_tokens.weight");
  EXPECT_THAT(checkpoint->output_source, HasSubstr("tied by config.json: tie_word_embeddings"));
}

TEST(FieldReport, A12_HeadDimComesFromTheWeightsAndIsCrossChecked) {
  const auto checkpoint = Load(TinyHead());  // 4 x 6 against a hidden size of 12
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_EQ(checkpoint->spec.head_dim.value, 6);
  TinyHead head;
  head.Set("head_dim", "3");
  EXPECT_THAT(Refusal(head), SaysWhatWhyAndHow("head_dim is 3 but rows of"));
}

TEST(FieldReport, A13_OnlyRotaryBuffersAreSkipped) {
  TinyHead head;
  head.tensors.push_back(Floats("midlayer.self_attn.rotary_emb.inv_freq", {3}));
  EXPECT_THAT(Load(head), IsOk());
  head.tensors.push_back(Floats("midlayer.self_attn.sinks", {4}));
  EXPECT_THAT(Refusal(head), SaysWhatWhyAndHow("midlayer.self_attn.sinks"));
}

TEST(FieldReport, A13_NormsAndBiasesOfTheAttentionAreRead) {
  TinyHead head;
  head.tensors.push_back(Floats("midlayer.self_attn.q_norm.weight", {6}));
  head.tensors.push_back(Floats("midlayer.self_attn.k_norm.weight", {6}));
  head.tensors.push_back(Floats("midlayer.self_attn.o_proj.bias", {12}));
  const auto checkpoint = Load(head);
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_TRUE(checkpoint->spec.qk_norm.value);
  EXPECT_TRUE(checkpoint->spec.output_bias.value);
  EXPECT_FALSE(checkpoint->spec.qkv_bias.value);
}

}  // namespace
}  // namespace aerie
