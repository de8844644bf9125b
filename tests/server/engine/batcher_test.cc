#include "server/engine/batcher.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace aerie {
namespace {

struct PlanCase {
  std::string name;
  PassLimits limits;
  std::vector<int64_t> rows_left;
  std::vector<PassShare> plan;
};

class PlanPassTest : public ::testing::TestWithParam<PlanCase> {};

TEST_P(PlanPassTest, SharesOutAPass) {
  const PlanCase& c = GetParam();
  EXPECT_EQ(PlanPass(c.rows_left, c.limits), c.plan);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, PlanPassTest,
    ::testing::ValuesIn(std::vector<PlanCase>{
        {"NothingToDo", {8, 4}, {}, {}},
        {"ExtendAndDraftRowsShareAPass", {8, 4}, {0, 3, 0}, {{0, 0}, {1, 3}, {2, 0}}},
        {"ALonePromptTakesAllRows", {8, 4}, {100}, {{0, 8}}},
        {"DraftRowsTakeNothingFromTheRows", {8, 4}, {0, 100}, {{0, 0}, {1, 8}}},
        {"ShortExtendsAreTakenWholeAndThePromptGetsTheRest",
         {8, 4},
         {100, 2, 1},
         {{0, 5}, {1, 2}, {2, 1}}},
        {"LongPromptsShareInEqualParts", {9, 4}, {100, 50, 70}, {{0, 3}, {1, 3}, {2, 3}}},
        {"TheRemainderGoesToTheLongest", {8, 4}, {100, 50, 70}, {{0, 3}, {1, 2}, {2, 3}}},
        {"APromptIsNeverWithoutARow", {2, 4}, {100, 90}, {{0, 1}, {1, 1}}},
        {"MoreExtendsThanRowsLeavesTheLongestOut", {2, 9}, {5, 9, 7}, {{0, 1}, {2, 1}}},
        {"DraftRowsComeFirstWhenPlacesAreFew", {8, 2}, {0, 3, 0}, {{0, 0}, {2, 0}}},
        {"ShortExtendsComeBeforeLongOnes", {8, 2}, {0, 90, 3}, {{0, 0}, {2, 3}}},
        {"TheOldestHasItsPlaceWhateverItNeeds", {8, 2}, {90, 0, 0, 0}, {{0, 8}, {1, 0}}},
        {"OlderComesFirstAmongEquals", {8, 2}, {3, 3, 3}, {{0, 3}, {1, 3}}},
        {"OnePlaceGoesToTheOldest", {8, 1}, {90, 0, 1}, {{0, 8}}},
    }),
    [](const auto& test) { return test.param.name; });

// Whatever the limits and however many short calls keep coming: everyone gets through.
TEST(PlanPassTest, StarvesNobodyUnderAStreamOfShortCalls) {
  const PassLimits limits{.max_rows = 4, .max_sessions = 2};
  std::vector<int64_t> rows_left = {40, 30};  // two prompts
  const auto prompt_left = [&] {
    return std::any_of(rows_left.begin(), rows_left.end(), [](int64_t rows) { return rows > 1; });
  };
  for (int passes = 0; prompt_left(); ++passes) {
    ASSERT_LT(passes, 40) << "a prompt did not get through";
    while (rows_left.size() < 6) rows_left.push_back(1);
    for (const PassShare& share : PlanPass(rows_left, limits)) {
      rows_left[share.candidate] -= share.rows;
    }
    std::erase(rows_left, 0);
  }
}

}  // namespace
}  // namespace aerie
