#include "server/verify/alignment.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/verify/statistics.h"
#include "tests/server/verify/target_fixture.h"

namespace aerie {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Rows that hold the states of `by` positions further on.
Alignment AlignmentOf(int32_t by, int32_t sequences = 10) {
  TargetFixture target(sequences);
  target.AddStates("early", std::nullopt, 1.0f, 0.3f, 1.0f, by);
  target.AddStates("middle", std::nullopt, 0.0f, 0.0f, 1.0f, by);
  target.AddStates("late", std::nullopt, 0.1f, 1.0f, 1.0f, by);
  return AlignByValue(target.captures, target.tables);
}

TEST(AlignmentTest, FindsWhoseStatesRowsAre) {
  for (const int32_t by : {-1, 0, 1}) {
    const Alignment alignment = AlignmentOf(by);
    ASSERT_EQ(alignment.tensors.size(), 3);
    EXPECT_EQ(alignment.tensors[0].peak, by);
    EXPECT_EQ(alignment.tensors[1].peak, std::nullopt);
    EXPECT_EQ(alignment.tensors[2].peak, by + 1);
    EXPECT_EQ(alignment.shift, -by);
  }
  EXPECT_THAT(AlignmentOf(0).reason, HasSubstr("the token that they stand beside"));
  EXPECT_THAT(AlignmentOf(1).reason, HasSubstr("1 position behind"));
  EXPECT_THAT(AlignmentOf(-1).reason, HasSubstr("1 position in front of"));
}

TEST(AlignmentTest, FindsNothingInLateStatesAlone) {
  TargetFixture target;
  target.AddStates("late", std::nullopt, 0.0f, 1.0f, 1.0f);
  target.AddStates("later", std::nullopt, 0.0f, 2.0f, 1.0f);
  EXPECT_EQ(AlignByValue(target.captures, target.tables).shift, std::nullopt);
}

TEST(AlignmentTest, FindsNothingWhereTensorsAreShiftedAgainstEachOther) {
  TargetFixture target;
  target.AddStates("early", std::nullopt, 1.0f, 0.0f, 1.0f);
  target.AddStates("late", std::nullopt, 0.0f, 1.0f, 1.0f);
  target.AddStates("late and stale", std::nullopt, 1.0f, 0.0f, 1.0f, -1);
  const Alignment alignment = AlignByValue(target.captures, target.tables);
  EXPECT_EQ(alignment.shift, std::nullopt);
  EXPECT_THAT(alignment.reason, HasSubstr("some may be shifted"));
}

TEST(AlignmentTest, FindsNothingInFewSequences) {
  EXPECT_EQ(AlignmentOf(0, kMinSequences - 1).shift, std::nullopt);
}

TEST(AlignmentTest, NeedsAnEmbedding) {
  TargetFixture target;
  target.AddStates("early", std::nullopt, 1.0f, 0.0f, 1.0f);
  target.tables.embedding.reset();
  EXPECT_EQ(AlignByValue(target.captures, target.tables).shift, std::nullopt);
}

TEST(AlignmentTest, FindsLateStatesThroughAnOutputMatrixOfItsOwn) {
  TargetFixture target;
  target.AddStates("early", std::nullopt, 1.0f, 0.0f, 1.0f);
  std::vector<float> output = {};
  const HiddenRows table = *target.tables.embedding;
  output.resize(table.rows() * table.width());
  table.CopyToFloat(absl::MakeSpan(output));
  for (size_t i = 0; i < output.size(); ++i) output[i] = i % 2 == 0 ? -output[i] : output[i];
  target.AddStates("late", std::nullopt, 0.0f, 1.0f, 1.0f);
  // The late states live in the other table's space.
  for (CaptureSequence& sequence : target.captures.sequences) {
    std::vector<float>& values =
        target.captures.made.emplace_back(sequence.length() * table.width());
    sequence.tensors[1].CopyToFloat(absl::MakeSpan(values));
    for (size_t i = 0; i < values.size(); ++i) values[i] = i % 2 == 0 ? -values[i] : values[i];
    sequence.tensors[1] = ViewFloats(values, table.width());
  }
  EXPECT_EQ(AlignByValue(target.captures, target.tables).shift, std::nullopt);
  target.tables.output = ViewFloats(output, table.width());
  EXPECT_EQ(AlignByValue(target.captures, target.tables).shift, 0);
}

TEST(ShiftsToTryTest, NeverGiveARowTheStateOfTheTokenItIsFed) {
  EXPECT_THAT(ShiftsToTry({}), ElementsAre(0, -1, 1));
  for (const auto& [shift, expected] : {std::pair<int32_t, std::vector<int32_t>>{0, {0, -1}},
                                        {1, {0, -1, 1}},
                                        {-1, {-1}},
                                        {-3, {-3}}}) {
    Alignment alignment;
    alignment.shift = shift;
    EXPECT_EQ(ShiftsToTry(alignment), expected);
  }
}

}  // namespace
}  // namespace aerie
