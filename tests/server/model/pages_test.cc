// What a sequence drafts must not depend on where its rows lie, on who shares them, on passes that
// failed, or on sequences that have left the batch.
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/model/eagle3_model_internal.h"
#include "tests/server/model/demo_head.h"
#include "tests/server/model/variant_heads.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

constexpr int32_t kDepth = 4;

void ExpectSame(const std::vector<ScoredToken>& actual, const std::vector<ScoredToken>& expected,
                float tolerance = 1e-4f) {
  ASSERT_EQ(TokensOf(actual), TokensOf(expected));
  for (size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual[i].log_prob, expected[i].log_prob, tolerance);
}

class PagesTest : public testing::TestWithParam<HeadKind> {
 protected:
  void SetUp() override {
    model_ = LoadVariant(GetParam(), 4);
    ASSERT_NE(model_, nullptr);
  }

  // What a fresh sequence that sees `visible` drafts behind rows 0 .. rows - 1.
  std::vector<ScoredToken> Fresh(const NoiseRows& rows, int64_t count, VisibleRows visible = {}) {
    OpenedSlot slot(*model_);
    slot.visible() = visible;
    slot.Extend(rows.sequence, count - 1, false);
    return slot.Chain(*slot.Extend(rows.sequence, 1, true), kDepth);
  }

  std::unique_ptr<DraftModel> model_;
  const NoiseRows one_{1, 60}, other_{2, 60};
};

TEST_P(PagesTest, ASequenceOnCopiedPagesDraftsTheSame) {
  OpenedSlot source(*model_), fork(*model_);
  source.Extend(one_.sequence, 22, true);
  fork.ForkOf(source, 18);
  const auto first = fork.Extend(one_.sequence, 1, true);
  ExpectSame(fork.Chain(*first, kDepth), Fresh(one_, 19), 1e-6f);
}

// What is written into a copy, guesses as well, leaves what it was copied from alone.
TEST_P(PagesTest, AForkLeavesItsSourceAlone) {
  OpenedSlot source(*model_), fork(*model_);
  source.Extend(one_.sequence, 17, false);
  fork.ForkOf(source, 9);
  fork.Chain(*fork.Extend(other_.sequence, 20, true), kDepth);
  source.Extend(one_.sequence, 3, false);
  ExpectSame(source.Chain(*source.Extend(one_.sequence, 1, true), kDepth), Fresh(one_, 21));
}

// Pages that no row sees any more may be gone.
TEST_P(PagesTest, PagesOutsideTheWindowMayBeMissing) {
  const VisibleRows visible{.sink = 3, .window = 10};
  OpenedSlot slot(*model_);
  slot.visible() = visible;
  slot.Extend(one_.sequence, 40, false);
  for (const int64_t page : {1, 2, 5, 6}) slot.pages()[page] = kNoPage;
  const auto first = slot.Extend(one_.sequence, 1, true);  // row 40 sees 0 .. 2 and 31 ..
  EXPECT_FALSE(HasFailure());
  ExpectSame(slot.Chain(*first, kDepth), Fresh(one_, 41, visible));
}

TEST_P(PagesTest, AFailedPassLeavesTheRoundAsItWas) {
  OpenedSlot slot(*model_), beside(*model_);
  const auto first = slot.Extend(one_.sequence, 20, true);
  const ScoredToken second = slot.Draft(first->token);
  SetLogitsTap(*model_, [](size_t, absl::Span<const float>) {
    throw std::runtime_error("a fault of the test");
  });
  std::vector<StepSequence> batch = {slot.DraftRow(second.token),
                                     beside.ExtendRows(other_.sequence, 9, Outputs::kLast)};
  const auto failed = model_->Step(batch, 1);
  EXPECT_THAT(failed, StatusIs(absl::StatusCode::kInternal));
  SetLogitsTap(*model_, nullptr);
  // The slot holds one draft row, not two: a third one would number its parent otherwise.
  const StepSequence again = slot.DraftRows({second.token}, {0});
  const auto outputs = model_->Step({&again, 1}, 1);
  ASSERT_THAT(outputs, IsOk());
  ExpectSame({*first, second, (*outputs)[0].rows[0].top[0]},
             {Fresh(one_, 20)[0], Fresh(one_, 20)[1], Fresh(one_, 20)[2]});
  ExpectSame(beside.Chain(*beside.Extend(other_.sequence, 30, true), kDepth), Fresh(other_, 30));
}

// Sequences end one by one, from the front, the middle and the end of the batch.
TEST_P(PagesTest, ABatchThatShrinksDraftsOnAsBefore) {
  const std::vector<int64_t> counts = {9, 31, 14, 22, 5};
  std::vector<std::unique_ptr<NoiseRows>> rows;
  std::vector<std::unique_ptr<OpenedSlot>> slots;
  std::vector<std::vector<ScoredToken>> chains(counts.size());
  std::vector<StepSequence> batch;
  for (size_t i = 0; i < counts.size(); ++i) {
    rows.push_back(std::make_unique<NoiseRows>(10 + i, 60));
    slots.push_back(std::make_unique<OpenedSlot>(*model_));
    batch.push_back(slots[i]->ExtendRows(rows[i]->sequence, counts[i], Outputs::kLast));
    slots[i]->Took(counts[i]);
  }
  std::vector<size_t> live = {0, 1, 2, 3, 4};
  const std::vector<size_t> leaves = {2, 0, 4, 1};
  for (size_t pass = 0;; ++pass) {
    const auto outputs = model_->Step(batch, 1);
    ASSERT_THAT(outputs, IsOk());
    ASSERT_EQ(outputs->size(), live.size());
    for (size_t j = 0; j < live.size(); ++j)
      chains[live[j]].push_back((*outputs)[j].rows.at(0).top.at(0));
    if (pass == leaves.size()) break;
    std::erase(live, leaves[pass]);
    slots[leaves[pass]].reset();
    batch.clear();
    for (const size_t i : live) batch.push_back(slots[i]->DraftRow(chains[i].back().token));
  }
  for (size_t i = 0; i < counts.size(); ++i) {
    SCOPED_TRACE(i);
    OpenedSlot alone(*model_);
    ExpectSame(alone.Chain(*alone.Extend(rows[i]->sequence, counts[i], true),
                           static_cast<int32_t>(chains[i].size())),
               chains[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, PagesTest, testing::ValuesIn(SteadyHeadKinds()),
                         [](const auto& test) { return test.param.name; });

// The rotation tells how far rows stand apart, not where: rows draft the same wherever they begin.
TEST(StartTest, ASequenceMayBeginAnywhere) {
  DraftModel& model = SharedDemo();
  const RecordedSequence& sequence = Recording()[1];
  std::vector<std::vector<ScoredToken>> chains;
  for (const int64_t start : {0, 10, 1000003}) {
    OpenedSlot slot(model);
    slot.StartAt(start, /*first=*/10);
    slot.Extend(sequence, 20, false);
    chains.push_back(slot.Chain(*slot.Extend(sequence, 20, true), kDepth));
  }
  ExpectSame(chains[1], chains[0]);
  ExpectSame(chains[2], chains[0]);
}

}  // namespace
}  // namespace aerie
