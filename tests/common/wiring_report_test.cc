#include "common/wiring_report.h"

#include "gtest/gtest.h"

namespace aerie {
namespace {

WiringState WorstOf(const std::vector<WiringState>& states) {
  std::vector<WiringReport> reports;
  for (const WiringState state : states) reports.emplace_back().state = state;
  return WorstWiringState(reports);
}

TEST(WorstWiringStateTest, GoesFromOkOverUnknownAndSuspectToWrong) {
  using enum WiringState;
  EXPECT_EQ(WorstOf({kOk, kOk}), kOk);
  EXPECT_EQ(WorstOf({kUnknown, kOk}), kUnknown);
  EXPECT_EQ(WorstOf({kOk, kSuspect, kUnknown}), kSuspect);
  EXPECT_EQ(WorstOf({kWrong, kSuspect}), kWrong);
}

TEST(WorstWiringStateTest, IsUnknownWhereNobodyCame) {
  EXPECT_EQ(WorstOf({}), WiringState::kUnknown);
}

}  // namespace
}  // namespace aerie
