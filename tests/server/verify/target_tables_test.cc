#include "server/verify/target_tables.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/checkpoint/tiny_head.h"
#include "tests/server/verify/target_fixture.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pointwise;
using Kind = TensorClaim::Kind;

std::vector<float> RowOf(const CaptureSet& captures, int32_t tensor, int64_t position) {
  std::vector<float> row(captures.hidden_size);
  CopyState(captures.sequences[0], tensor, position, absl::MakeSpan(row));
  return row;
}

TEST(FindByValueTest, KnowsAnEmbeddingAndANormedStateWhateverTheyAreCalled) {
  TargetFixture target;
  target.AddStates("embedding", TensorClaim{Kind::kFinalNorm}, 1.0f, 0.0f, 0.0f);
  target.AddStates("scaled embedding", std::nullopt, 24.0f, 0.0f, 0.0f);
  target.AddStates("an early layer", TensorClaim{Kind::kEmbedding}, 1.0f, 0.2f, 0.3f);
  target.AddNormed("normed", TensorClaim{Kind::kBoundary, 3}, 2);
  const auto find = [&](int32_t tensor) {
    return FindByValue(target.captures, tensor, target.tables);
  };
  EXPECT_EQ(find(0), ValueFinding::kEmbedding);
  EXPECT_EQ(find(1), ValueFinding::kEmbedding);
  EXPECT_EQ(find(2), ValueFinding::kUnknown);
  EXPECT_EQ(find(3), ValueFinding::kFinalNorm);
}

TEST(AddTargetTensorsTest, MakesTheEmbeddingAndTheNormOfTheLastBoundary) {
  TargetFixture target;
  target.AddStates("early", TensorClaim{Kind::kBoundary, 2}, 1.0f, 0.0f, 0.4f);
  target.AddStates("last", TensorClaim{Kind::kBoundary, TargetFixture::kLayers}, 0.0f, 1.0f, 0.4f);
  std::vector<std::string> limits;
  AddTargetTensors(target.tables, target.captures, limits);
  ASSERT_EQ(target.captures.tensors.size(), 4);
  EXPECT_EQ(target.captures.tensors[2].name, "target.embedding");
  EXPECT_EQ(target.captures.tensors[3].name, "target.norm(last)");
  EXPECT_EQ(target.captures.tensors[3].norm_of, 1);
  EXPECT_THAT(limits, IsEmpty());
  EXPECT_EQ(FindByValue(target.captures, 2, target.tables), ValueFinding::kEmbedding);
  EXPECT_EQ(FindByValue(target.captures, 3, target.tables), ValueFinding::kFinalNorm);
  // Against a norm made independently.
  target.AddNormed("expected", std::nullopt, 1);
  EXPECT_THAT(RowOf(target.captures, 3, 7),
              Pointwise(FloatNear(1e-5f), RowOf(target.captures, 4, 7)));
}

TEST(AddTargetTensorsTest, AddsNothingThatIsRecordedAlready) {
  TargetFixture target;
  target.AddStates("what", std::nullopt, 1.0f, 0.0f, 0.0f);
  target.AddStates("last", TensorClaim{Kind::kBoundary, TargetFixture::kLayers}, 0.0f, 1.0f, 0.4f);
  target.AddNormed("ever", std::nullopt, 1);
  std::vector<std::string> limits;
  AddTargetTensors(target.tables, target.captures, limits);
  EXPECT_EQ(target.captures.tensors.size(), 3);
  EXPECT_THAT(limits, IsEmpty());
}

TEST(AddTargetTensorsTest, SaysWhatItCannotMake) {
  TargetFixture target;
  target.AddStates("early", TensorClaim{Kind::kBoundary, 2}, 1.0f, 0.0f, 0.4f);
  std::vector<std::string> limits;
  AddTargetTensors(target.tables, target.captures, limits);
  EXPECT_THAT(limits, ElementsAre(HasSubstr("claims to be boundary 12")));
}

std::vector<TensorToWrite>::iterator NormOf(TinyHead& head) {
  return std::find_if(
      head.target_tensors.begin(), head.target_tensors.end(),
      [](const TensorToWrite& tensor) { return tensor.name == "model.norm.weight"; });
}

TEST(LoadTargetTablesTest, ReadsWhatATargetsFolderHas) {
  const TemporaryFolder folder;
  TinyHead head;
  const std::vector<float> weight = Noise(TinyHead::kHidden, 5);
  NormOf(head)->bytes = BytesOf(weight);
  head.target_tensors.push_back({"model.layers.0.norm.weight",
                                 "F32",
                                 {TinyHead::kHidden},
                                 BytesOf(Noise(TinyHead::kHidden, 6))});
  head.SetTarget("model_type", "\"llama\"");
  head.SetTarget("rms_norm_eps", "1e-5");
  head.SetTarget("rope_theta", "100000.0");
  head.Write(folder);
  const auto tables = LoadTargetTables(folder.path("target"), "");
  ASSERT_THAT(tables, IsOk());
  EXPECT_EQ(tables->model_type, "llama");
  EXPECT_EQ(tables->embedding->rows(), TinyHead::kVocab);
  EXPECT_EQ(tables->norm_weight, weight);
  EXPECT_DOUBLE_EQ(tables->norm_epsilon, 1e-5);
  EXPECT_EQ(tables->rope_theta, 100000.0);
  EXPECT_THAT(tables->limits, IsEmpty());
}

TEST(LoadTargetTablesTest, CountsWhatIsMissingAsALimit) {
  const TemporaryFolder folder;
  TinyHead head;
  head.target_tensors.erase(NormOf(head));
  head.Write(folder);
  const auto tables = LoadTargetTables(folder.path("target"), "");
  ASSERT_THAT(tables, IsOk());
  EXPECT_THAT(tables->limits, Contains(HasSubstr("final norm was not tried")));
  EXPECT_THAT(LoadTargetTables(folder.path("nowhere"), ""), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace aerie
