// Heads with latent attention, and heads that take the target's final norm without an fc.
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

using testing::HasSubstr;

absl::StatusOr<Checkpoint> Load(const TinyHead& head) {
  const TemporaryFolder folder;
  head.Write(folder);
  return LoadCheckpoint(folder.path("head"), folder.path("target"));
}

std::string Refusal(const TinyHead& head) {
  const auto checkpoint = Load(head);
  EXPECT_THAT(checkpoint, StatusIs(absl::StatusCode::kFailedPrecondition));
  return std::string(checkpoint.status().message());
}

void Put(TinyHead& head, const std::string& name, std::vector<int64_t> shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  head.tensors.push_back({name, "F32", std::move(shape), BytesOf(Noise(count, 90))});
}

constexpr char kAttention[] = "midlayer.self_attn.";

// 4 heads: nope 3, rope 2, v 7; queries by way of 8 numbers, keys and values of 9.
TinyHead Latent() {
  TinyHead head;
  const std::string at = kAttention;
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
    head.Remove(at + name + ".weight");
  }
  Put(head, at + "q_a_proj.weight", {8, 24});
  Put(head, at + "q_a_layernorm.weight", {8});
  Put(head, at + "q_b_proj.weight", {20, 8});
  Put(head, at + "kv_a_proj_with_mqa.weight", {11, 24});
  Put(head, at + "kv_a_layernorm.weight", {9});
  Put(head, at + "kv_b_proj.weight", {40, 9});
  Put(head, at + "o_proj.weight", {12, 28});
  head.Set("head_dim", "null");
  return head;
}

TEST(LatentHeadTest, SizesComeFromTheTensors) {
  TinyHead head = Latent();
  for (const auto& [key, value] : {std::pair{"q_lora_rank", "8"},
                                   {"kv_lora_rank", "9"},
                                   {"qk_nope_head_dim", "3"},
                                   {"qk_rope_head_dim", "2"},
                                   {"v_head_dim", "7"},
                                   {"num_key_value_heads", "4"}}) {
    head.Set(key, value);
  }
  const auto checkpoint = Load(head);
  ASSERT_THAT(checkpoint, IsOk());
  const HeadSpec& spec = checkpoint->spec;
  EXPECT_EQ(spec.attention.value, AttentionKind::kLatent);
  EXPECT_EQ(spec.latent.q_lora_rank.value, 8);
  EXPECT_EQ(spec.latent.kv_lora_rank.value, 9);
  EXPECT_EQ(spec.latent.qk_nope_head_dim.value, 3);
  EXPECT_EQ(spec.latent.qk_rope_head_dim.value, 2);
  EXPECT_EQ(spec.latent.v_head_dim.value, 7);
  EXPECT_EQ(spec.head_dim.value, 5);
  EXPECT_EQ(spec.num_kv_heads.value, 4);
  EXPECT_EQ(spec.rope.dims.value, 2);
  EXPECT_TRUE(spec.rope.interleaved.value);
  EXPECT_THAT(Load(Latent()), IsOk());  // without a word of it in config.json
}

TEST(LatentHeadTest, QueriesMayComeStraightFromTheInput) {
  TinyHead head = Latent();
  for (const char* name : {"q_a_proj.weight", "q_a_layernorm.weight", "q_b_proj.weight"}) {
    head.Remove(std::string(kAttention) + name);
  }
  Put(head, std::string(kAttention) + "q_proj.weight", {20, 24});
  const auto checkpoint = Load(head);
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_EQ(checkpoint->spec.latent.q_lora_rank.value, 0);
}

TEST(LatentHeadTest, AContradictingConfigIsRefused) {
  TinyHead head = Latent();
  head.Set("v_head_dim", "8");
  EXPECT_THAT(Refusal(head), SaysWhatWhyAndHow("v_head_dim is 8"));
}

TEST(LatentHeadTest, KeysOfTheOtherKindAreNotLeftOver) {
  TinyHead head = Latent();
  Put(head, std::string(kAttention) + "k_proj.weight", {20, 24});
  EXPECT_THAT(Refusal(head),
              SaysWhatWhyAndHow("the weights hold midlayer.self_attn.k_proj.weight"));
}

TEST(FinalNormHeadTest, TakesOneCaptureOfItsOwnWidthAndNoFc) {
  TinyHead head;
  head.Remove("fc.weight");
  head.Set("eagle_config",
           R"({"use_aux_hidden_state":false,"eagle_aux_hidden_state_layer_ids":[]})");
  const auto checkpoint = Load(head);
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_FALSE(checkpoint->spec.use_aux_hidden_state.value);
  EXPECT_EQ(checkpoint->spec.num_captures.value, 1);
  EXPECT_EQ(checkpoint->spec.hidden_size, (Sourced<int32_t>{12, "tensor norm.weight"}));
  EXPECT_THAT(checkpoint->spec.wiring.value.ToString(), HasSubstr("final_norm"));
}

TEST(FinalNormHeadTest, AnotherWidthIsRefused) {
  TinyHead head;
  head.Remove("fc.weight");
  head.Set("use_aux_hidden_state", "false");
  head.SetTarget("hidden_size", "24");
  EXPECT_THAT(Refusal(head), SaysWhatWhyAndHow("but use_aux_hidden_state is false"));
}

}  // namespace
}  // namespace aerie
