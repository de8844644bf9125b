// Which tensor is which, whatever it is called; and when that cannot be told.
#include "server/recording/match.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/recording/match_report.h"
#include "tests/server/checkpoint/three_parts.h"
#include "tests/server/recording/toy_target.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<int32_t> kTemplate = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};

std::vector<ToyTensor> Everywhere() {
  std::vector<ToyTensor> tensors;
  for (int32_t b = 0; b <= ToyTarget::kLayers; ++b) {
    tensors.push_back({"boundary_" + std::to_string(b), At(b),
                       R"({"kind": "boundary", "boundary": )" + std::to_string(b) + "}", ""});
  }
  tensors.push_back({"final_norm", FinalNorm(), R"({"kind": "final_norm"})", ""});
  return tensors;
}

// Names, labels and order say nothing about the places.
std::vector<ToyTensor> Dump() {
  return {{"aux_0", At(4), "null", "layer 1"},
          {"aux_1", At(2), "null", "embed"},
          {"final", At(5), "null", "final"},
          {"zero", FinalNorm(), "null", "layer 0"}};
}

Recording Load(const ToyRecording& toy) {
  const TemporaryFolder folder;
  toy.Write(folder);
  auto loaded = LoadRecording(folder.path());
  EXPECT_THAT(loaded, IsOk());
  return *std::move(loaded);
}

MatchResult Match(const Recording& a, const Recording& b) {
  auto result = MatchRecordings(a, b);
  EXPECT_THAT(result, IsOk());
  return *std::move(result);
}

// "same boundary_4", by tensor of A.
std::vector<std::string> Findings(const Recording& b, const MatchResult& result) {
  std::vector<std::string> findings;
  for (const TensorMatch& match : result.matches) {
    findings.push_back(std::string(MatchVerdictName(match.verdict)) + " " +
                       b.tensors()[match.best].name);
  }
  return findings;
}

TEST(MatchTest, TheSameTextInAnotherDtypeWithNoiseIsMatchedWhateverTensorsAreCalled) {
  const auto texts = ToyTexts(3, 20, 1);
  const Recording a = Load({.texts = texts, .tensors = Dump(), .noise = 0.02f, .bfloat16 = true});
  const Recording b = Load({.texts = texts, .tensors = Everywhere()});
  const MatchResult result = Match(a, b);
  EXPECT_EQ(result.method, MatchMethod::kRows);
  EXPECT_EQ(result.compared_rows, 57);  // all but the first of each text
  EXPECT_THAT(Findings(b, result), ElementsAre("same boundary_4", "same boundary_2",
                                               "same boundary_5", "same final_norm"));
  for (const TensorMatch& match : result.matches) EXPECT_GT(match.margin, 0.65);
  EXPECT_EQ(MatchExitCode(a, b, result), 0);
}

TEST(MatchTest, SizeAloneWouldNotHaveToldNeighboursApart) {
  const Recording all = Load({.texts = ToyTexts(3, 20, 1), .tensors = Everywhere()});
  const float third = FindFacts(all, 3).median_row_rms, fourth = FindFacts(all, 4).median_row_rms;
  EXPECT_LT(std::abs(third / fourth - 1), 0.001);
}

TEST(MatchTest, OtherTextsBehindOneTemplateAreMatchedByTheTemplatesRows) {
  const Recording a = Load({.texts = ToyTexts(3, 9, 1, kTemplate), .tensors = Dump()});
  const Recording b = Load({.texts = ToyTexts(2, 12, 77, kTemplate), .tensors = Everywhere()});
  const MatchResult result = Match(a, b);
  EXPECT_EQ(result.method, MatchMethod::kRows);
  EXPECT_GE(result.compared_rows, 9);
  EXPECT_THAT(Findings(b, result), ElementsAre("same boundary_4", "same boundary_2",
                                               "same boundary_5", "same final_norm"));
}

TEST(MatchTest, TextsWithNothingInCommonAreLikelyAtMost) {
  const Recording a = Load({.texts = ToyTexts(8, 40, 1), .tensors = Dump(), .bfloat16 = true});
  const Recording b = Load({.texts = ToyTexts(8, 40, 77), .tensors = Everywhere()});
  const MatchResult result = Match(a, b);
  EXPECT_EQ(result.method, MatchMethod::kFingerprints);
  EXPECT_THAT(Findings(b, result), ElementsAre("likely boundary_4", "likely boundary_2",
                                               "likely boundary_5", "likely final_norm"));
}

TEST(MatchTest, OfTensorsThatAreLikeOneByFingerprintOnlyTheNearestIsLikely) {
  const Recording a = Load({.texts = ToyTexts(8, 40, 1), .tensors = Everywhere()});
  const Recording b = Load({.texts = ToyTexts(8, 40, 77), .tensors = {{"p", At(1)}, {"q", At(5)}}});
  const MatchResult result = Match(a, b);
  EXPECT_EQ(result.method, MatchMethod::kFingerprints);
  for (size_t i = 0; i < a.tensors().size(); ++i) {
    const bool there = i == 1 || i == 5;
    EXPECT_EQ(result.matches[i].verdict == MatchVerdict::kLikely, there) << a.tensors()[i].name;
  }
}

TEST(MatchTest, RecordingsTooShortForFingerprintsAreUnsure) {
  const Recording a = Load({.texts = ToyTexts(2, 4, 1), .tensors = Dump()});
  const Recording b = Load({.texts = ToyTexts(2, 4, 77), .tensors = Everywhere()});
  const MatchResult result = Match(a, b);
  EXPECT_EQ(result.compared_rows, 0);
  for (const TensorMatch& match : result.matches) {
    EXPECT_EQ(match.verdict, MatchVerdict::kUnsure);
    EXPECT_THAT(match.reason, HasSubstr("too short"));
  }
  EXPECT_EQ(MatchExitCode(a, b, result), 4);
}

TEST(MatchTest, APlaceThatTheOtherRecordingLacksIsDifferentThoughItsNeighbourIsThere) {
  const auto texts = ToyTexts(3, 20, 1);
  const Recording a = Load({.texts = texts, .tensors = {{"x", At(3)}, {"y", At(2)}}});
  const Recording b = Load({.texts = texts, .tensors = {{"p", At(4)}, {"q", At(2)}}});
  const MatchResult result = Match(a, b);
  EXPECT_EQ(result.matches[0].verdict, MatchVerdict::kDifferent);
  EXPECT_THAT(Findings(b, result)[1], "same q");
  EXPECT_EQ(MatchExitCode(a, b, result), 0);
}

TEST(MatchTest, TwoEqualTensorsCannotBeToldApart) {
  const auto texts = ToyTexts(3, 20, 1);
  const Recording a = Load({.texts = texts, .tensors = {{"x", At(3)}}});
  const Recording b = Load({.texts = texts, .tensors = {{"p", At(3)}, {"q", At(3)}, {"r", At(1)}}});
  const MatchResult result = Match(a, b);
  EXPECT_EQ(result.matches[0].verdict, MatchVerdict::kUnsure);
  EXPECT_THAT(result.matches[0].reason, HasSubstr("p and of q alike"));
  EXPECT_EQ(MatchExitCode(a, b, result), 4);
}

TEST(MatchTest, ASingleTensorIsJudgedByItsRowsAlone) {
  const auto texts = ToyTexts(3, 20, 1);
  const Recording a = Load({.texts = texts, .tensors = {{"x", At(3)}, {"y", At(4)}}});
  const Recording b = Load({.texts = texts, .tensors = {{"p", At(3)}}});
  const MatchResult result = Match(a, b);
  EXPECT_EQ(result.matches[0].verdict, MatchVerdict::kSame);
  EXPECT_EQ(result.matches[0].runner_up, std::nullopt);
  EXPECT_EQ(result.matches[1].verdict, MatchVerdict::kDifferent);
}

TEST(MatchTest, StatesBesideTheWrongTokensAreFoundOnePositionOn) {
  const auto texts = ToyTexts(3, 20, 1);
  for (const int32_t shift : {-1, 1}) {
    const Recording a = Load({.texts = texts, .tensors = {{"x", At(3)}}, .row_shift = shift});
    const Recording b = Load({.texts = texts, .tensors = Everywhere()});
    const MatchResult result = Match(a, b);
    EXPECT_EQ(result.matches[0].verdict, MatchVerdict::kDifferent);
    EXPECT_EQ(result.matches[0].shift, shift);
    EXPECT_EQ(b.tensors()[result.matches[0].best].name, "boundary_3");
    EXPECT_EQ(MatchExitCode(a, b, result), 3);
    EXPECT_THAT(MatchAsText(a, b, result), HasSubstr("wrong tokens"));
  }
}

TEST(MatchTest, ATensorCalledEmbeddingThatIsALayerIsContradictedByTheOtherRecording) {
  const auto texts = ToyTexts(3, 20, 1);
  const Recording dump =
      Load({.texts = texts,
            .tensors = {{"aux_0", At(3), R"({"kind": "embedding"})", "embed"},
                        {"final", FinalNorm(), R"({"kind": "final_norm"})", "final"}}});
  const Recording live = Load({.texts = texts, .tensors = Everywhere()});
  const MatchResult result = Match(dump, live);
  EXPECT_TRUE(result.matches[0].claims_differ);
  EXPECT_FALSE(result.matches[1].claims_differ);
  EXPECT_EQ(MatchExitCode(dump, live, result), 3);
  EXPECT_THAT(MatchAsText(dump, live, result),
              HasSubstr("aux_0 \"embed\" of A claims embedding and is the same as boundary_3 of B, "
                        "which claims boundary 3"));
}

TEST(MatchTest, AClaimBesideNoneIsNoContradiction) {
  const auto texts = ToyTexts(3, 20, 1);
  const Recording a =
      Load({.texts = texts, .tensors = {{"x", At(3), R"({"kind": "boundary", "boundary": 2})"}}});
  const Recording b = Load({.texts = texts, .tensors = {{"p", At(3)}, {"q", At(4)}}});
  EXPECT_FALSE(Match(a, b).matches[0].claims_differ);
  EXPECT_FALSE(Match(b, a).matches[0].claims_differ);
}

TEST(MatchTest, OneClaimForTwoDifferentTensorsIsContradicted) {
  const auto texts = ToyTexts(3, 20, 1);
  const std::string third = R"({"kind": "boundary", "boundary": 3})";
  const Recording a = Load({.texts = texts, .tensors = {{"x", At(3), third}}});
  const Recording b = Load({.texts = texts, .tensors = {{"p", At(4), third}}});
  const MatchResult result = Match(a, b);
  EXPECT_TRUE(result.matches[0].claims_differ);
  EXPECT_THAT(MatchAsText(a, b, result), HasSubstr("and they are different"));
}

TEST(MatchTest, EmbeddingAndBoundaryZeroAreOnePlace) {
  const auto texts = ToyTexts(3, 20, 1);
  const Recording a =
      Load({.texts = texts, .tensors = {{"x", Embedding(), R"({"kind": "embedding"})"}}});
  const Recording b = Load({.texts = texts, .tensors = Everywhere()});
  const MatchResult result = Match(a, b);
  EXPECT_THAT(Findings(b, result), ElementsAre("same boundary_0"));
  EXPECT_FALSE(result.matches[0].claims_differ);
}

TEST(MatchTest, TargetsOfDifferentWidthAreRefused) {
  WrittenRecording narrow;
  const TemporaryFolder folder;
  narrow.Write(folder);
  const auto other = LoadRecording(folder.path());
  ASSERT_THAT(other, IsOk());
  const Recording a = Load({.texts = ToyTexts(1, 5, 1), .tensors = Dump()});
  const auto result = MatchRecordings(a, *other);
  EXPECT_THAT(result, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(std::string(result.status().message()), SaysWhatWhyAndHow("96 numbers"));
}

TEST(FactsTest, OnlyAnEmbeddingDependsOnTheTokenAlone) {
  const Recording all = Load({.texts = ToyTexts(3, 60, 1), .tensors = Everywhere()});
  for (size_t i = 0; i < all.tensors().size(); ++i) {
    const TensorFacts facts = FindFacts(all, i);
    EXPECT_GE(facts.token_pairs, 4);
    EXPECT_EQ(facts.depends_on_token_alone(), i == 0) << all.tensors()[i].name;
    EXPECT_EQ(FactAgainstClaim(all.tensors()[i], facts), std::nullopt);
  }
}

TEST(FactsTest, ALabelledEmbeddingIsContradictedWithNothingToCompareItWith) {
  const Recording dump =
      Load({.texts = ToyTexts(3, 60, 1),
            .tensors = {{"aux_0", At(1), R"({"kind": "embedding"})", "embed"},
                        {"aux_1", At(0), R"({"kind": "boundary", "boundary": 2})", ""}}});
  EXPECT_THAT(FactAgainstClaim(dump.tensors()[0], FindFacts(dump, 0)).value_or(""),
              HasSubstr("it is no embedding"));
  EXPECT_THAT(FactAgainstClaim(dump.tensors()[1], FindFacts(dump, 1)).value_or(""),
              HasSubstr("it is an embedding"));
}

TEST(FactsTest, WithoutRepeatedTokensNothingIsSaidAboutEmbeddings) {
  const Recording dump = Load({.texts = {{1, 2, 3, 4, 5}}, .tensors = {{"x", At(0)}}});
  EXPECT_EQ(FindFacts(dump, 0).depends_on_token_alone(), std::nullopt);
}

}  // namespace
}  // namespace aerie
