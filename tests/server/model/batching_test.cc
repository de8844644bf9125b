// What a slot drafts must not depend on how its rows came: alone or in company, at once or in
// pieces, straight or after guesses and rollbacks.
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/model/demo_head.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

// Products of other shapes add in another order; a row of the wrong sequence is off by more than
// 1e-1.
constexpr float kTolerance = 1e-4f;
constexpr int32_t kDepth = 4;

void ExpectSame(const std::vector<ScoredToken>& actual, const std::vector<ScoredToken>& expected) {
  ASSERT_EQ(TokensOf(actual), TokensOf(expected));
  for (size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual[i].log_prob, expected[i].log_prob, kTolerance);
}

TEST(BatchingTest, ABatchDraftsWhatEachSequenceDraftsAlone) {
  DraftModel& model = SharedDemo();
  // Other lengths everywhere, and slots in another order than sequences.
  const std::vector<int64_t> counts = {46, 9, 120, 1, 77};
  const std::vector<size_t> slot_of = {3, 0, 4, 2, 1};
  std::vector<std::unique_ptr<OpenedSlot>> slots;
  for (size_t i = 0; i < counts.size(); ++i) slots.push_back(std::make_unique<OpenedSlot>(model));

  std::vector<std::vector<ScoredToken>> chains(counts.size());
  for (int32_t depth = 0; depth < kDepth; ++depth) {
    std::vector<StepSequence> batch;
    for (size_t i = 0; i < counts.size(); ++i) {
      OpenedSlot& slot = *slots[slot_of[i]];
      batch.push_back(depth == 0 ? slot.ExtendRows(Recording()[i], counts[i], Outputs::kLast)
                                 : slot.DraftRow(chains[i].back().token));
    }
    const auto outputs = model.Step(batch, 1);
    ASSERT_THAT(outputs, IsOk());
    for (size_t i = 0; i < counts.size(); ++i) {
      if (depth == 0) slots[slot_of[i]]->Took(counts[i]);
      chains[i].push_back((*outputs)[i].rows.at(0).top.at(0));
    }
  }
  for (size_t i = 0; i < counts.size(); ++i) {
    SCOPED_TRACE(i);
    ExpectSame(chains[i], DraftAlone(model, Recording()[i], counts[i] - 1, kDepth));
  }
}

TEST(BatchingTest, ExtendAndDraftRowsShareAPass) {
  DraftModel& model = SharedDemo();
  OpenedSlot first(model), second(model), third(model);
  const ScoredToken first_draft = *first.Extend(Recording()[0], 50, true);
  const ScoredToken third_draft = *third.Extend(Recording()[2], 30, true);
  // A draft row, a long extend that wants nothing, a draft row, in one pass.
  const std::vector<StepSequence> batch = {first.DraftRow(first_draft.token),
                                           second.ExtendRows(Recording()[1], 40, Outputs::kNone),
                                           third.DraftRow(third_draft.token)};
  const auto outputs = model.Step(batch, 1);
  ASSERT_THAT(outputs, IsOk());
  second.Took(40);
  EXPECT_TRUE((*outputs)[1].rows.empty());
  ExpectSame({first_draft, (*outputs)[0].rows[0].top[0]}, DraftAlone(model, Recording()[0], 49, 2));
  ExpectSame({third_draft, (*outputs)[2].rows[0].top[0]}, DraftAlone(model, Recording()[2], 29, 2));
  ExpectSame(second.Chain(*second.Extend(Recording()[1], 5, true), kDepth),
             DraftAlone(model, Recording()[1], 44, kDepth));
}

TEST(BatchingTest, PiecesOfAPromptDraftWhatTheWholeDrafts) {
  DraftModel& model = SharedDemo();
  OpenedSlot slot(model);
  for (const int64_t piece : {1, 30, 2, 64})
    slot.Extend(Recording()[4], piece, /*wants_output=*/piece == 2);
  ExpectSame(slot.Chain(*slot.Extend(Recording()[4], 20, true), kDepth),
             DraftAlone(model, Recording()[4], 116, kDepth));
}

TEST(BatchingTest, RowsAfterARollbackReplaceTheOldOnes) {
  DraftModel& model = SharedDemo();
  OpenedSlot slot(model);
  slot.Extend(Recording()[5], 20, false);
  // Rows of another sequence, as after a fork of the text; then back, in front of it.
  const StepSequence other = slot.ExtendRows(Recording()[6], 30, Outputs::kLast);
  ASSERT_THAT(model.Step({&other, 1}, 1), IsOk());
  slot.Truncate(13);
  ExpectSame(slot.Chain(*slot.Extend(Recording()[5], 40, true), kDepth),
             DraftAlone(model, Recording()[5], 52, kDepth));
}

TEST(BatchingTest, RandomRoundsEndInTheDraftOfAFreshSlot) {
  DraftModel& model = SharedDemo();
  std::mt19937 random(20240607);
  const auto below = [&random](int64_t bound) { return static_cast<int64_t>(random() % bound); };
  for (int trial = 0; trial < 6; ++trial) {
    SCOPED_TRACE(trial);
    const RecordedSequence& sequence = Recording()[below(Recording().size())];
    OpenedSlot slot(model);
    for (int round = 0; round < 12; ++round) {
      if (slot.length() > 0 && below(3) == 0) slot.Truncate(below(slot.length()));
      const int64_t rows = 1 + below(round == 0 ? 60 : 5);
      const bool drafts = below(4) != 0;
      const auto first = slot.Extend(sequence, rows, drafts);
      if (drafts) slot.Chain(*first, 1 + static_cast<int32_t>(below(5)));
    }
    const ScoredToken first = *slot.Extend(sequence, 1, true);
    const int64_t last = slot.length() - 1;
    ExpectSame(slot.Chain(first, kDepth), DraftAlone(model, sequence, last, kDepth));
  }
}

// Hidden states that are numbers, and still too large to compute with.
TEST(BatchingTest, HugeRowsOfOneSequenceLeaveTheOthersDraftAlone) {
  DraftModel& model = SharedDemo();
  OpenedSlot healthy(model), sick(model);
  const ScoredToken first = *healthy.Extend(Recording()[7], 60, true);
  sick.Extend(Recording()[8], 10, false);

  const std::vector<float> huge(Recording()[0].aux.width(), 3e38f);
  const auto rows =
      HiddenRows::Create(DType::kF32, 1, static_cast<int64_t>(huge.size()),
                         {reinterpret_cast<const char*>(huge.data()), huge.size() * sizeof(float)});
  ASSERT_THAT(rows, IsOk());
  const int32_t token = 5;
  StepSequence bad = sick.ExtendRows(Recording()[8], 1, Outputs::kLast);
  bad.tokens = {&token, 1};
  bad.aux = *rows;
  const std::vector<StepSequence> batch = {healthy.DraftRow(first.token), bad};
  const auto outputs = model.Step(batch, 1);
  ASSERT_THAT(outputs, IsOk());
  EXPECT_FALSE(outputs->at(1).rows.at(0).finite);
  EXPECT_TRUE(outputs->at(1).rows[0].top.empty());
  EXPECT_TRUE(outputs->at(0).rows.at(0).finite);
  healthy.Truncate(59);
  ExpectSame(healthy.Chain(*healthy.Extend(Recording()[7], 1, true), kDepth),
             DraftAlone(model, Recording()[7], 59, kDepth));
  ExpectSame(sick.Chain(*sick.Extend(Recording()[8], 20, true), kDepth),
             DraftAlone(model, Recording()[8], 29, kDepth));
}

TEST(BatchingTest, MoreThanOneCandidateComesBestFirst) {
  DraftModel& model = SharedDemo();
  OpenedSlot slot(model);
  const StepSequence rows = slot.ExtendRows(Recording()[0], 46, Outputs::kLast);
  const auto outputs = model.Step({&rows, 1}, 5);
  ASSERT_THAT(outputs, IsOk());
  const auto& top = (*outputs)[0].rows.at(0).top;
  ASSERT_EQ(top.size(), 5);
  ExpectSame({top[0]}, DraftAlone(model, Recording()[0], 45, 1));
  for (size_t i = 1; i < top.size(); ++i) EXPECT_TRUE(top[i].log_prob <= top[i - 1].log_prob);
}

// A float32 row that holds what a bfloat16 row holds is the same row; so is one whose bytes lie
// unaligned.
TEST(BatchingTest, TheTypeAndPlaceOfRowsOnTheWireDoNotMatter) {
  DraftModel& model = SharedDemo();
  const RecordedSequence& sequence = Recording()[3];
  const int64_t count = 43, width = sequence.aux.width();
  std::vector<float> wide(count * width);
  sequence.RowAux(0, count).CopyToFloat(absl::MakeSpan(wide));
  std::string shifted = "x";
  shifted.append(reinterpret_cast<const char*>(wide.data()), wide.size() * sizeof(float));
  OpenedSlot slot(model);
  const auto rows =
      HiddenRows::Create(DType::kF32, count, width, std::string_view(shifted).substr(1));
  ASSERT_THAT(rows, IsOk());
  StepSequence extend = slot.ExtendRows(sequence, count, Outputs::kLast);
  extend.aux = *rows;
  const auto outputs = model.Step({&extend, 1}, 1);
  ASSERT_THAT(outputs, IsOk());
  slot.Took(count);
  ExpectSame(slot.Chain((*outputs)[0].rows[0].top[0], kDepth),
             DraftAlone(model, sequence, count - 1, kDepth));
}

}  // namespace
}  // namespace aerie
