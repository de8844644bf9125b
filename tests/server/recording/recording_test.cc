// What a recording gives, and everything for which it is refused.
#include "server/recording/recording.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/checkpoint/three_parts.h"
#include "tests/server/recording/recording_writer.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<Recording> Load(const WrittenRecording& written) {
  const TemporaryFolder folder;
  written.Write(folder);
  return LoadRecording(folder.path());
}

std::string Refusal(const WrittenRecording& written) {
  const auto recording = Load(written);
  EXPECT_THAT(recording, StatusIs(absl::StatusCode::kFailedPrecondition));
  return std::string(recording.status().message());
}

TEST(RecordingTest, EveryRowIsWhereItsSampleTensorAndPositionSay) {
  const auto loaded = Load(WrittenRecording());
  ASSERT_THAT(loaded, IsOk());
  for (size_t sample = 0; sample < 2; ++sample) {
    for (size_t tensor = 0; tensor < 2; ++tensor) {
      const HiddenRows rows = loaded->rows(sample, tensor);
      ASSERT_EQ(rows.rows(), sample == 0 ? 3 : 4);
      ASSERT_EQ(rows.width(), 5);
      std::vector<float> values(static_cast<size_t>(rows.rows() * rows.width()));
      rows.CopyToFloat(absl::MakeSpan(values));
      for (int64_t i = 0; i < rows.rows() * rows.width(); ++i) {
        EXPECT_EQ(values[static_cast<size_t>(i)], ValueAt(sample, tensor, i / 5, i % 5));
      }
    }
  }
}

TEST(RecordingTest, SaysWhatItsDescriptionSays) {
  const auto loaded = Load(WrittenRecording());
  ASSERT_THAT(loaded, IsOk());
  EXPECT_EQ(loaded->target().id, "tiny");
  EXPECT_EQ(loaded->target().num_layers, 6);
  EXPECT_EQ(loaded->dtype(), DType::kF32);
  EXPECT_EQ(loaded->source(), "a test");
  ASSERT_EQ(loaded->tensors().size(), 2);
  EXPECT_EQ(loaded->tensors()[0].label, "layer 3");
  EXPECT_EQ(loaded->tensors()[0].claim, (TensorClaim{TensorClaim::Kind::kBoundary, 3}));
  EXPECT_EQ(loaded->tensors()[1].claim, std::nullopt);
  EXPECT_THAT(loaded->samples()[0].tokens, ElementsAre(7, 8, 39));
  EXPECT_EQ(loaded->samples()[0].prompt_tokens, 2);
  EXPECT_EQ(loaded->samples()[1].prompt_tokens, std::nullopt);
  EXPECT_EQ(loaded->total_tokens(), 7);
  EXPECT_EQ(loaded->FindTensor("final"), 1);
  EXPECT_EQ(loaded->FindTensor("tokens"), std::nullopt);
}

TEST(RecordingTest, RowsStayValidWhenTheRecordingIsMoved) {
  auto loaded = Load(WrittenRecording());
  ASSERT_THAT(loaded, IsOk());
  const HiddenRows rows = loaded->rows(1, 0);
  const Recording moved = *std::move(loaded);
  EXPECT_EQ(moved.rows(1, 0).bytes().data(), rows.bytes().data());
  EXPECT_EQ(rows.FindNonFinite(), std::nullopt);
}

TEST(RecordingTest, DigestFollowsTokensAlone) {
  WrittenRecording other_states, other_tokens;
  other_states.Tensor("0.final").bytes[0] ^= 1;
  other_tokens.Tensor("b.tokens").bytes[0] ^= 1;
  const std::string digest = Load(WrittenRecording())->TokensDigest();
  EXPECT_EQ(digest.size(), 16);
  EXPECT_EQ(Load(other_states)->TokensDigest(), digest);
  EXPECT_NE(Load(other_tokens)->TokensDigest(), digest);
}

TEST(RecordingTest, LayersAndVocabularyMayBeUnknown) {
  WrittenRecording written;
  written.Edit(R"("num_layers": 6, )", "");
  written.Edit(R"(, "vocab_size": 40)", "");
  const auto loaded = Load(written);
  ASSERT_THAT(loaded, IsOk());
  EXPECT_EQ(loaded->target().num_layers, 0);
  EXPECT_EQ(loaded->target().vocab_size, 0);
}

TEST(RecordingTest, AFolderWithoutADescriptionIsNotFound) {
  const TemporaryFolder folder;
  EXPECT_THAT(LoadRecording(folder.path()), StatusIs(absl::StatusCode::kNotFound));
}

struct EditCase {
  const char* name;
  const char* from;
  const char* to;
  const char* seen;
};

class RecordingDescriptionTest : public testing::TestWithParam<EditCase> {};

TEST_P(RecordingDescriptionTest, IsRefusedWithWhatWhyAndHow) {
  WrittenRecording written;
  written.Edit(GetParam().from, GetParam().to);
  EXPECT_THAT(Refusal(written), SaysWhatWhyAndHow(GetParam().seen));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, RecordingDescriptionTest,
    testing::ValuesIn(std::vector<EditCase>{
        {"NoJson", "{", "", "recording.json cannot be read"},
        {"AKeyTwice", R"("source")", R"("dtype": "float32", "source")", "stands twice"},
        {"AnotherFormat", "aerie-recording/1", "aerie-recording/2", "\"aerie-recording/2\""},
        {"NoTarget", R"("target")", R"("goal")", "describes no target"},
        {"NoWidth", R"("hidden_size": 5)", R"("hidden_size": 0)", "hidden_size 0"},
        {"FractionalWidth", R"("hidden_size": 5)", R"("hidden_size": 5.5)", "no hidden_size"},
        {"UnknownDtype", "float32", "float8", "\"float8\""},
        {"NoTensors", R"("tensors")", R"("tensor")", "no usable list of tensors"},
        {"TwinTensors", R"("final")", R"("aux_0")", "two tensors are called \"aux_0\""},
        {"ATensorCalledTokens", R"("final")", R"("tokens")", "called \"tokens\""},
        {"ATensorNameWithASlash", R"("final")", R"("a/b")", "called \"a/b\""},
        {"ATensorThatIsNoObject", R"({"name": "final", "label": "", "claim": null})", "7",
         "tensor number 1 is no object"},
        {"UnknownClaim", R"("kind": "boundary")", R"("kind": "layer")", "of kind \"layer\""},
        {"AClaimPastTheTarget", R"("boundary": 3)", R"("boundary": 7)", "boundary 7"},
        {"TwinSamples", R"("name": "b")", R"("name": "0")", "two samples are called \"0\""},
        {"ASampleNameWithADot", R"("name": "b")", R"("name": "b.c")", "called \"b.c\""},
        {"APromptPastTheEnd", R"("prompt_tokens": 2)", R"("prompt_tokens": 4)", "prompt_tokens 4"},
        {"AFileElsewhere", "samples-00002", "../samples-00002", "../samples-00002"},
        {"AnAbsoluteFile", "samples-00002", "/samples-00002", "/samples-00002"},
        {"AFileOfAnotherKind", "samples-00002.safetensors", "samples.bin", "samples.bin"},
        {"AMissingFile", "samples-00002", "samples-00003", "samples-00003.safetensors cannot be"},
        {"ALengthThatDiffers", R"("tokens": 4)", R"("tokens": 5)", "\"b.tokens\" is I32 [4]"},
        {"AWidthThatDiffers", R"("hidden_size": 5)", R"("hidden_size": 6)",
         "\"0.aux_0\" is F32 [3, 5]"},
        {"ATypeThatDiffers", "float32", "bfloat16", "\"0.aux_0\" is F32 [3, 5]"},
        {"AMissingTensor", R"("final")", R"("last")", "lacks \"0.last\""},
        {"AnUnlistedTensor", R"("final")", R"("last")", "holds \"0.final\""},
        {"ATokenPastTheVocabulary", R"("vocab_size": 40)", R"("vocab_size": 39)",
         "token 2 of sample \"0\" is 39"}}),
    [](const auto& test) { return test.param.name; });

TEST(RecordingTest, ANegativeTokenIsRefusedWhateverTheVocabulary) {
  WrittenRecording written;
  written.Edit(R"(, "vocab_size": 40)", "");
  written.Tensor("b.tokens").bytes = BytesOf(std::vector<int32_t>{1, -1, 0, 0});
  EXPECT_THAT(Refusal(written), SaysWhatWhyAndHow("token 1 of sample \"b\" is -1"));
}

TEST(RecordingTest, RowsThatAreNotFiniteAreNamed) {
  WrittenRecording written;
  std::vector<float> rows(20, 1.0f);
  rows[5] = std::numeric_limits<float>::quiet_NaN();
  rows[6] = std::numeric_limits<float>::infinity();
  rows[19] = -std::numeric_limits<float>::infinity();
  written.Tensor("b.final").bytes = BytesOf(rows);
  EXPECT_THAT(Refusal(written), SaysWhatWhyAndHow("row 1, 3 of \"b.final\" holds NaN"));
}

TEST(RecordingTest, ADamagedFileIsNamed) {
  const TemporaryFolder folder;
  const WrittenRecording written;
  written.Write(folder);
  ASSERT_TRUE(WriteFile(folder.path("samples-00001.safetensors"), "no such thing"));
  const auto loaded = LoadRecording(folder.path());
  EXPECT_THAT(std::string(loaded.status().message()),
              SaysWhatWhyAndHow("samples-00001.safetensors cannot be read"));
}

TEST(RecordingTest, AllThatIsWrongIsToldAtOnce) {
  WrittenRecording written;
  written.Edit("samples-00002", "samples-00003");
  written.Edit(R"("vocab_size": 40)", R"("vocab_size": 39)");
  EXPECT_THAT(Refusal(written), HasSubstr("2 things are wrong"));
}

}  // namespace
}  // namespace aerie
