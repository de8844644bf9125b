#include "server/verify/labels.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/verify/target_fixture.h"

namespace aerie {
namespace {

using testing::HasSubstr;
using Kind = TensorClaim::Kind;

class LabelsTest : public testing::Test {
 protected:
  // What was dumped at three boundaries and behind the norm, under these labels.
  void Dump(std::vector<std::optional<TensorClaim>> claims) {
    target_.AddStates("aux_0", claims[0], 1.0f, 0.0f, 0.5f);
    target_.AddStates("aux_1", claims[1], 0.5f, 0.5f, 0.5f);
    target_.AddStates("aux_2", claims[2], 0.0f, 1.0f, 0.5f);
    target_.AddNormed("final", claims[3], 2);
    reading_.wiring = *Wiring::Create(
        {Capture::Boundary(3), Capture::Boundary(6), Capture::Boundary(9)}, TargetFixture::kLayers);
    FindCandidate(target_.captures, reading_);
  }

  std::vector<LabelResult> Judge(Verdict verdict) {
    return JudgeLabels({target_.captures, &target_.tables,
                        reading_.candidate.has_value() ? &reading_ : nullptr, &best_, rivals_,
                        verdict});
  }

  TargetFixture target_;
  Reading reading_;
  const Candidate best_{{0, 1, 2}, 0};
  std::vector<Candidate> rivals_;
};

TEST_F(LabelsTest, AreSupportedByAVerifiedWiringAndByValues) {
  Dump({TensorClaim{Kind::kBoundary, 3}, TensorClaim{Kind::kBoundary, 6},
        TensorClaim{Kind::kBoundary, 9}, TensorClaim{Kind::kFinalNorm}});
  for (const LabelResult& label : Judge(Verdict::kVerified)) {
    EXPECT_EQ(label.verdict, LabelVerdict::kSupported) << label.tensor;
  }
  const auto undecided = Judge(Verdict::kUndecided);
  EXPECT_EQ(undecided[0].verdict, LabelVerdict::kUntested);
  EXPECT_EQ(undecided[3].verdict, LabelVerdict::kSupported);
}

// "embed, layer 3, layer 6, layer 9", of which not one is true.
TEST_F(LabelsTest, ThatAllLieAreAllContradicted) {
  Dump({TensorClaim{Kind::kEmbedding}, TensorClaim{Kind::kBoundary, 3},
        TensorClaim{Kind::kBoundary, 6}, TensorClaim{Kind::kBoundary, 9}});
  const auto labels = Judge(Verdict::kContradicted);
  ASSERT_EQ(labels.size(), 4);
  for (const LabelResult& label : labels) {
    EXPECT_EQ(label.verdict, LabelVerdict::kContradicted) << label.tensor;
  }
  EXPECT_THAT(labels[0].reason, HasSubstr("not those of the target's embedding table"));
  EXPECT_THAT(labels[1].reason, HasSubstr("where its files name boundary 6"));
  EXPECT_THAT(labels[3].reason, HasSubstr("normed by the target's final norm"));
}

TEST_F(LabelsTest, AreUntestedWhereRivalsOfTheBestDisagree) {
  Dump({TensorClaim{Kind::kEmbedding}, TensorClaim{Kind::kBoundary, 3},
        TensorClaim{Kind::kBoundary, 6}, TensorClaim{Kind::kBoundary, 9}});
  rivals_ = {best_, Candidate{{1, 0, 2}, 0}};
  const auto labels = Judge(Verdict::kContradicted);
  EXPECT_EQ(labels[1].verdict, LabelVerdict::kUntested);  // the rival has it where it is declared
  EXPECT_THAT(labels[1].reason, HasSubstr("disagree"));
  EXPECT_EQ(labels[2].verdict, LabelVerdict::kContradicted);
}

TEST_F(LabelsTest, AreNotBlamedForAListThatMayBeWrongItself) {
  Dump({TensorClaim{Kind::kBoundary, 6}, TensorClaim{Kind::kBoundary, 3},
        TensorClaim{Kind::kBoundary, 9}, std::nullopt});
  const auto labels = Judge(Verdict::kContradicted);
  ASSERT_EQ(labels.size(), 3);
  EXPECT_EQ(labels[0].verdict, LabelVerdict::kUntested);
  EXPECT_THAT(labels[0].reason, HasSubstr("either this label or the head's list is wrong"));
}

TEST_F(LabelsTest, OfANormedLastStateAreContradicted) {
  Dump({TensorClaim{Kind::kBoundary, 3}, TensorClaim{Kind::kBoundary, 6},
        TensorClaim{Kind::kFinalNorm}, TensorClaim{Kind::kBoundary, TargetFixture::kLayers}});
  const auto labels = Judge(Verdict::kUndecided);
  EXPECT_EQ(labels[2].verdict, LabelVerdict::kContradicted);  // is not normed
  EXPECT_EQ(labels[3].verdict, LabelVerdict::kContradicted);  // is
}

}  // namespace
}  // namespace aerie
