// What to do when labels stand in the way of a verdict: the rest of the advice is tested where
// whole recordings are judged.
#include "server/verify/advice.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace aerie {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(AdviceTest, SendsToTheTargetAndNotForMoreRowsWhenLabelsLie) {
  VerifyResult result;
  result.verdict = Verdict::kUndecided;
  result.labels.push_back({.tensor = "aux_0", .verdict = LabelVerdict::kUntested});
  const CaptureSet captures;
  EXPECT_THAT(Advise({.result = result, .captures = captures}),
              ElementsAre("Record more sequences, of different texts."));
  result.labels.push_back({.tensor = "aux_1", .verdict = LabelVerdict::kContradicted});
  EXPECT_THAT(Advise({.result = result, .captures = captures}),
              ElementsAre(HasSubstr("aerie-verify match")));
}

}  // namespace
}  // namespace aerie
