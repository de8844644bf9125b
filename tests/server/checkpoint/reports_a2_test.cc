// The rest of reports_a_test.cc: quantised heads, files on disk, the rotation, flags of the maths.
#include <cmath>
#include <filesystem>
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
using testing::HasSubstr;

absl::StatusOr<Checkpoint> LoadFrom(const TemporaryFolder& folder,
                                    const CheckpointOptions& options = {}) {
  return LoadCheckpoint(folder.path("head"), folder.path("target"), options);
}

absl::StatusOr<Checkpoint> Load(const TinyHead& head, const CheckpointOptions& options = {}) {
  const TemporaryFolder folder;
  head.Write(folder);
  return LoadFrom(folder, options);
}

std::string Refusal(const TinyHead& head, const CheckpointOptions& options = {}) {
  const auto checkpoint = Load(head, options);
  EXPECT_THAT(checkpoint, StatusIs(absl::StatusCode::kFailedPrecondition));
  return std::string(checkpoint.status().message());
}

TensorToWrite Floats(std::string name, std::vector<int64_t> shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return {std::move(name), "F32", std::move(shape), BytesOf(Noise(count, 70))};
}

TEST(FieldReport, A14_Fp8WeightsComeWithTheirScales) {
  TinyHead head;
  head.Tensor("fc.weight") = {"fc.weight", "F8_E4M3", {12, 36}, std::string(432, '\1')};
  EXPECT_THAT(Refusal(head), SaysWhatWhyAndHow("tensor fc.weight is F8_E4M3 [12, 36]"));
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{}, {1}, {1, 1}, {12}, {12, 1}}) {
    for (const char* name : {"fc.weight_scale", "fc.weight_scale_inv"}) {
      TinyHead scaled = head;
      scaled.tensors.push_back(Floats(name, shape));
      scaled.tensors.push_back(Floats("fc.input_scale", {}));
      const auto checkpoint = Load(scaled);
      ASSERT_THAT(checkpoint, IsOk());
      EXPECT_EQ(checkpoint->scales.at(HeadTensor::kFc).name, name);
      EXPECT_THAT(checkpoint->spec.quantisation.value, HasSubstr("F8_E4M3"));
    }
  }
  head.tensors.push_back(Floats("fc.weight_scale_inv", {3, 9}));
  EXPECT_THAT(Refusal(head), HasSubstr("scales for blocks"));
}

TEST(FieldReport, A14_OtherQuantisationsAreRefusedByName) {
  for (const char* config :
       {R"({"quant_method":"modelopt","quant_algo":"NVFP4"})",
        R"({"quant_method":"gptq","bits":4})",
        R"({"quant_method":"fp8","weight_block_size":[128,128]})",
        R"({"quant_method":"compressed-tensors","format":"pack-quantized"})"}) {
    TinyHead head;
    head.Set("quantization_config", config);
    EXPECT_THAT(Refusal(head), SaysWhatWhyAndHow("quantization_config asks for quantised weights"))
        << config;
  }
}

TEST(FieldReport, A15_APickledFileIsNotOpenedAndItsConversionIsTold) {
  const TemporaryFolder folder;
  TinyHead().Write(folder);
  std::filesystem::rename(folder.path("head/model.safetensors"),
                          folder.path("head/pytorch_model.bin"));
  const auto checkpoint = LoadFrom(folder);
  ASSERT_THAT(checkpoint, StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(std::string(checkpoint.status().message()), SaysWhatWhyAndHow("pytorch_model.bin"));
  EXPECT_THAT(std::string(checkpoint.status().message()), HasSubstr("python3 -c"));
}

// The tiny head in two shards; `index` replaces one entry of the weight map.
void WriteShards(const TemporaryFolder& folder, const std::string& tensor,
                 const std::string& shard) {
  const TinyHead head;
  head.Write(folder);
  std::filesystem::remove(folder.path("head/model.safetensors"));
  const size_t half = head.tensors.size() / 2;
  std::string map;
  for (size_t i = 0; i < head.tensors.size(); ++i) {
    const std::string& name = head.tensors[i].name;
    const std::string own = i < half ? "a.safetensors" : "b.safetensors";
    absl::StrAppend(&map, i == 0 ? "" : ",", "\"", name, "\":\"", name == tensor ? shard : own,
                    "\"");
  }
  ASSERT_TRUE(WriteFile(folder.path("head/a.safetensors"),
                        Safetensors({head.tensors.begin(), head.tensors.begin() + half})));
  ASSERT_TRUE(WriteFile(folder.path("head/b.safetensors"),
                        Safetensors({head.tensors.begin() + half, head.tensors.end()})));
  ASSERT_TRUE(WriteFile(folder.path("head/model.safetensors.index.json"),
                        absl::StrCat("{\"weight_map\":{", map, "}}")));
}

TEST(FieldReport, A16_EveryShardOfTheIndexMustBeThere) {
  const TemporaryFolder folder;
  WriteShards(folder, "", "");
  EXPECT_THAT(LoadFrom(folder), IsOk());
  std::filesystem::remove(folder.path("head/b.safetensors"));
  const auto checkpoint = LoadFrom(folder);
  ASSERT_THAT(checkpoint, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(std::string(checkpoint.status().message()),
              SaysWhatWhyAndHow("\"b.safetensors\" is not there"));
}

TEST(FieldReport, A17_AnIndexOutOfStepWithItsShardsIsRefused) {
  const TemporaryFolder folder;
  WriteShards(folder, "fc.weight", "b.safetensors");
  const auto checkpoint = LoadFrom(folder);
  ASSERT_THAT(checkpoint, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(std::string(checkpoint.status().message()), SaysWhatWhyAndHow("fc.weight"));
}

TEST(FieldReport, A18_TheEmbeddingOfAWrapperIsFoundBySuffixOrByFlag) {
  TinyHead head;
  head.target_config = R"({"text_config":)" + head.target_config + "}";
  head.target_tensors[0].name = "language_model.model.embed_tokens.weight";
  EXPECT_THAT(Load(head), IsOk());
  head.target_tensors.push_back(head.target_tensors[0]);
  head.target_tensors.back().name = "audio.embed_tokens.weight";
  EXPECT_THAT(Refusal(head), SaysWhatWhyAndHow("2 tensors named"));
  EXPECT_THAT(Load(head, {.embedding_key = "language_model.model.embed_tokens.weight"}), IsOk());
}

TEST(FieldReport, A19_EverySpellingOfTheRotationIsReadAndContradictionsAreRefused) {
  const std::string llama3 =
      R"("factor":8,"low_freq_factor":1,"high_freq_factor":4,"original_max_position_embeddings":64})";
  TinyHead older, newer;
  older.Set("rope_scaling", R"({"type":"llama3",)" + llama3);
  older.Set("rope_theta", "500000");
  newer.Set("rope_parameters", R"({"rope_type":"llama3","rope_theta":500000.0,)" + llama3);
  for (const TinyHead& head : {older, newer}) {
    const auto checkpoint = Load(head);
    ASSERT_THAT(checkpoint, IsOk());
    const RopeSpec& rope = checkpoint->spec.rope;
    EXPECT_EQ(rope.type.value, RopeType::kLlama3);
    EXPECT_EQ(rope.theta.value, 500000.0);
    EXPECT_EQ(rope.high_freq_factor.value, 4.0);
    EXPECT_EQ(rope.original_max_positions.value, 64);
    EXPECT_THAT(rope.theta.source, HasSubstr("rope_theta"));
  }
  newer.Set("rope_theta", "10000");
  EXPECT_THAT(Refusal(newer), SaysWhatWhyAndHow("rope_parameters.rope_theta is 500000.0"));
}

TEST(FieldReport, A20_AnUnknownScalingIsRefused) {
  TinyHead head;
  head.Set("rope_scaling", R"({"rope_type":"longrope","factor":4})");
  EXPECT_THAT(Refusal(head), SaysWhatWhyAndHow("longrope"));
}

TEST(FieldReport, A21_ScalingOfTheConfigIsFollowedAndShownAndItsBaseCanBeOverridden) {
  TinyHead head;
  head.Set("rope_scaling",
           R"({"type":"yarn","factor":32.0,"original_max_position_embeddings":2048})");
  const auto checkpoint = Load(head, {.head = {.rope_theta = 5000.0}});
  ASSERT_THAT(checkpoint, IsOk());
  const RopeSpec& rope = checkpoint->spec.rope;
  EXPECT_EQ(rope.type.value, RopeType::kYarn);
  EXPECT_DOUBLE_EQ(rope.amplitude.value, 0.1 * std::log(32.0) + 1.0);
  EXPECT_EQ(rope.theta, (Sourced<double>{5000.0, "flag --rope-theta"}));
  EXPECT_THAT(checkpoint->Settings(),
              Contains(Setting{"rope_type", "yarn", "config.json: rope_scaling.type"}));
}

TEST(FieldReport, A22_NewFlagsAreReadAndOneWithoutItsTensorsIsRefused) {
  TinyHead head;
  head.Set("norm_output", "true");
  const auto checkpoint = Load(head);
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_TRUE(checkpoint->spec.norm_output.value);
  EXPECT_THAT(checkpoint->warnings, Contains(SaysWhatWhyAndHow("norm_output is true")));
  const auto overridden = Load(head, {.head = {.norm_output = false}});
  ASSERT_THAT(overridden, IsOk());
  EXPECT_EQ(overridden->spec.norm_output, (Sourced<bool>{false, "flag --norm-output"}));
  head.Set("fc_norm", "true");
  EXPECT_THAT(Refusal(head), SaysWhatWhyAndHow("fc_norm is true but the weights hold no"));
}

TEST(FieldReport, A23_TwoExclusiveNormsAreRefused) {
  TinyHead head;
  head.tensors.push_back(Floats("input_norm.weight", {36}));
  for (int i = 0; i < 3; ++i) {
    head.tensors.push_back(Floats(absl::StrCat("fc_norm.", i, ".weight"), {12}));
  }
  EXPECT_THAT(Refusal(head), SaysWhatWhyAndHow("both norm_before_fc"));
}

// The tiny head as speculators writes it.
TinyHead Speculators() {
  TinyHead head;
  head.Set("draft_vocab_size", "null");  // stands outside of the layer's object
  head.config = absl::StrCat(R"({"speculators_model_type":"eagle3","draft_vocab_size":10,)",
                             R"("eagle_aux_hidden_state_layer_ids":[3,6,9],)",
                             R"("transformer_layer_config":)", head.config, "}");
  return head;
}

TEST(FieldReport, A24_NormBeforeResidualSaysWhereItComesFrom) {
  const auto plain = Load(TinyHead());
  ASSERT_THAT(plain, IsOk());
  EXPECT_EQ(plain->spec.norm_before_residual, (Sourced<bool>{false, "default of SpecForge"}));

  TinyHead head = Speculators();
  EXPECT_THAT(Refusal(head), SaysWhatWhyAndHow("has no norm_before_residual"));
  const auto flagged = Load(head, {.head = {.norm_before_residual = true}});
  ASSERT_THAT(flagged, IsOk());
  EXPECT_EQ(flagged->spec.norm_before_residual,
            (Sourced<bool>{true, "flag --norm-before-residual"}));
  head.Set("norm_before_residual", "true");
  const auto stated = Load(head);
  ASSERT_THAT(stated, IsOk());
  EXPECT_EQ(stated->spec.norm_before_residual,
            (Sourced<bool>{true, "config.json: norm_before_residual"}));
  // Its layer ids are boundaries, whatever they are.
  EXPECT_EQ(stated->spec.wiring.value.ToString(), "[3, 6, 9]");
  EXPECT_EQ(stated->wiring_claim.certainty, WiringCertainty::kCertain);
}

}  // namespace
}  // namespace aerie
