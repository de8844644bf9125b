// Heads of other kinds than the demo's: what a slot drafts must not depend on how its rows came.
// That the numbers are right is judged elsewhere, against a reference; here is what one run through
// a prompt cannot see. Layers in front of the last compute every row, under a mask, so a wrong one
// shows where rows come in pieces.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/model/demo_head.h"
#include "tests/server/model/variant_heads.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

constexpr int32_t kDepth = 4;
void ExpectSame(const std::vector<ScoredToken>& actual, const std::vector<ScoredToken>& expected) {
  ASSERT_EQ(TokensOf(actual), TokensOf(expected));
  for (size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual[i].log_prob, expected[i].log_prob, 1e-4f);
}

class VariantHeadTest : public testing::TestWithParam<HeadKind> {
 protected:
  void SetUp() override {
    model_ = LoadVariant(GetParam());
    ASSERT_NE(model_, nullptr);
  }
  std::unique_ptr<DraftModel> model_;
  const NoiseRows one_{1, 40}, other_{2, 40};
};

TEST_P(VariantHeadTest, ABatchDraftsWhatEachSequenceDraftsAlone) {
  OpenedSlot first(*model_), second(*model_);
  const std::vector<StepSequence> prompts = {
      first.ExtendRows(one_.sequence, 30, Outputs::kLast),
      second.ExtendRows(other_.sequence, 11, Outputs::kLast)};
  auto outputs = model_->Step(prompts, 1);
  ASSERT_THAT(outputs, IsOk());
  first.Took(30);
  second.Took(11);
  std::vector<ScoredToken> chains[2];
  for (int32_t depth = 0; depth < kDepth; ++depth) {
    for (const size_t i : {0, 1}) chains[i].push_back((*outputs)[i].rows.at(0).top.at(0));
    const std::vector<StepSequence> drafts = {first.DraftRow(chains[0].back().token),
                                              second.DraftRow(chains[1].back().token)};
    outputs = model_->Step(drafts, 1);
    ASSERT_THAT(outputs, IsOk());
  }
  ExpectSame(chains[0], DraftAlone(*model_, one_.sequence, 29, kDepth));
  ExpectSame(chains[1], DraftAlone(*model_, other_.sequence, 10, kDepth));
}

TEST_P(VariantHeadTest, RowsAfterARollbackReplaceTheOldOnes) {
  OpenedSlot slot(*model_);
  slot.Chain(*slot.Extend(one_.sequence, 8, true), kDepth);
  const StepSequence fork = slot.ExtendRows(other_.sequence, 6, Outputs::kLast);
  ASSERT_THAT(model_->Step({&fork, 1}, 1), IsOk());
  slot.Truncate(5);
  slot.Extend(one_.sequence, 1, false);
  ExpectSame(slot.Chain(*slot.Extend(one_.sequence, 7, true), kDepth),
             DraftAlone(*model_, one_.sequence, 12, kDepth));
}

// All but dynamic rotation, which has a test of its own.
class SteadyHeadTest : public VariantHeadTest {};

TEST_P(SteadyHeadTest, PiecesOfAPromptDraftWhatTheWholeDrafts) {
  OpenedSlot slot(*model_);
  for (const int64_t piece : {1, 17, 2}) slot.Extend(one_.sequence, piece, piece == 2);
  ExpectSame(slot.Chain(*slot.Extend(one_.sequence, 13, true), kDepth),
             DraftAlone(*model_, one_.sequence, 32, kDepth));
}

std::string NameOf(const testing::TestParamInfo<HeadKind>& test) { return test.param.name; }

INSTANTIATE_TEST_SUITE_P(Kinds, VariantHeadTest, testing::ValuesIn(HeadKinds()), NameOf);
INSTANTIATE_TEST_SUITE_P(Kinds, SteadyHeadTest, testing::ValuesIn(SteadyHeadKinds()), NameOf);

// Keys keep the turn of the pass that wrote them, so past the trained length, 16 here, pieces make
// a difference; up to it they make none.
TEST(DynamicRopeTest, PiecesMatterOnlyPastTheTrainedLength) {
  const auto model = LoadVariant(DynamicHead());
  ASSERT_NE(model, nullptr);
  const NoiseRows rows(1, 40);
  const auto in_two = [&](int64_t first, int64_t second) {
    OpenedSlot slot(*model);
    slot.Extend(rows.sequence, first, false);
    return *slot.Extend(rows.sequence, second, true);
  };
  const auto at_once = [&](int64_t count) {
    return DraftAlone(*model, rows.sequence, count - 1, 1).at(0);
  };
  EXPECT_NEAR(in_two(9, 7).log_prob, at_once(16).log_prob, 1e-5f);
  EXPECT_GT(std::abs(in_two(9, 25).log_prob - at_once(34).log_prob), 1e-4f);
}

}  // namespace
}  // namespace aerie
