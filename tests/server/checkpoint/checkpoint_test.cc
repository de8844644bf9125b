#include "server/checkpoint/checkpoint.h"

#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/checkpoint/three_parts.h"
#include "tests/server/checkpoint/tiny_head.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;

absl::StatusOr<Checkpoint> Load(const TemporaryFolder& folder,
                                const CheckpointOptions& options = {}) {
  return LoadCheckpoint(folder.path("head"), folder.path("target"), options);
}

TEST(CheckpointTest, HoldsEverythingThatTheModelNeeds) {
  const TemporaryFolder folder;
  const TinyHead head;
  head.Write(folder);
  const auto checkpoint = Load(folder);
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_EQ(checkpoint->tensors.size(), 13);
  EXPECT_EQ(checkpoint->tensors.at(HeadTensor::kFc).Describe(), "F32 [12, 36]");
  EXPECT_EQ(checkpoint->embedding.bytes, head.target_tensors[0].bytes);
  EXPECT_EQ(checkpoint->embedding_source, "target's tensor model.embed_tokens.weight");
  EXPECT_THAT(checkpoint->draft_to_target, ElementsAreArray(TinyTargetIds()));
  EXPECT_EQ(checkpoint->target.num_layers, 12);
  EXPECT_EQ(checkpoint->name, "head");
}

TEST(CheckpointTest, TheHeadsOwnEmbeddingComesFirst) {
  const TemporaryFolder folder;
  TinyHead head;
  head.tensors.push_back({"embed_tokens.weight", "F32", {40, 12}, BytesOf(Noise(480, 99))});
  head.Write(folder);
  const auto checkpoint = Load(folder);
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_EQ(checkpoint->embedding.bytes, head.tensors.back().bytes);
  EXPECT_EQ(checkpoint->target_weights, nullptr);
}

TEST(CheckpointTest, TheVersionFollowsTheWeightsAndNotTheirPlace) {
  const TemporaryFolder one, two, other;
  TinyHead head;
  head.Write(one);
  head.Write(two);
  head.Tensor("norm.weight").bytes[0] ^= 1;
  head.Write(other);
  EXPECT_EQ(Load(one)->version, Load(two)->version);
  EXPECT_NE(Load(one)->version, Load(other)->version);
}

TEST(CheckpointTest, AllComplaintsAreToldAtOnce) {
  const TemporaryFolder folder;
  TinyHead head;
  head.Set("hidden_act", "\"gelu\"");
  head.Set("rope_scaling", R"({"type":"linear"})");
  head.tensors.push_back({"surprise", "F32", {1}, "1234"});
  head.target_tensors[0].name = "model.wte.weight";
  head.Write(folder);
  const auto checkpoint = Load(folder);
  ASSERT_THAT(checkpoint, StatusIs(absl::StatusCode::kFailedPrecondition));
  const std::string message(checkpoint.status().message());
  EXPECT_THAT(message, HasSubstr("4 things are wrong"));
  for (const char* seen : {"hidden_act", "rope_scaling.factor", "surprise", "0 tensors named"}) {
    EXPECT_THAT(message, SaysWhatWhyAndHow(seen));
  }
}

TEST(CheckpointTest, SeveralEmbeddingsNeedAKey) {
  const TemporaryFolder folder;
  TinyHead head;
  head.target_tensors.push_back(head.target_tensors[0]);
  head.target_tensors.back().name = "vision.embed_tokens.weight";
  head.Write(folder);
  const auto refused = Load(folder);
  ASSERT_THAT(refused, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(std::string(refused.status().message()), SaysWhatWhyAndHow("2 tensors named"));
  EXPECT_THAT(Load(folder, {.embedding_key = "model.embed_tokens.weight"}), IsOk());
}

TEST(CheckpointTest, ANameThatOnlyEndsAlikeIsNoEmbedding) {
  const TemporaryFolder folder;
  TinyHead head;
  head.target_tensors.push_back({"model.pos_embed_tokens.weight", "F32", {1}, "1234"});
  head.Write(folder);
  EXPECT_THAT(Load(folder), IsOk());
}

TEST(CheckpointTest, AnEmbeddingOfAnotherShapeIsRefused) {
  const TemporaryFolder folder;
  TinyHead head;
  head.target_tensors[0] = {"model.embed_tokens.weight", "F32", {41, 12}, BytesOf(Noise(492, 1))};
  head.Write(folder);
  const auto checkpoint = Load(folder);
  ASSERT_THAT(checkpoint, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(std::string(checkpoint.status().message()), SaysWhatWhyAndHow("F32 [41, 12]"));
}

TEST(CheckpointTest, MissingFilesAreNotFound) {
  const TemporaryFolder folder;
  const TinyHead head;
  EXPECT_THAT(Load(folder), StatusIs(absl::StatusCode::kNotFound));
  head.Write(folder);
  std::filesystem::remove(folder.path("head/config.json"));
  EXPECT_THAT(Load(folder), StatusIs(absl::StatusCode::kNotFound));
  head.Write(folder);
  std::filesystem::remove(folder.path("target/config.json"));
  EXPECT_THAT(Load(folder), StatusIs(absl::StatusCode::kNotFound));
}

TEST(CheckpointTest, ADamagedFileIsInvalid) {
  const TemporaryFolder folder;
  TinyHead().Write(folder);
  std::filesystem::resize_file(folder.path("head/model.safetensors"), 100);
  EXPECT_THAT(Load(folder), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace aerie
