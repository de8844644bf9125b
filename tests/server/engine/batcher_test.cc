#include "server/engine/batcher.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace aerie {
namespace {

// Places and rows are limited; draft rows only where a test says so.
PassLimits Limits(int32_t max_rows, int32_t max_sessions, int32_t max_draft_rows = 1000) {
  return {max_rows, max_draft_rows, max_sessions};
}

// Rounds of one client, by the rows that they still have to extend by; 0: one draft row.
std::vector<PassCandidate> RoundsOfOneClient(const std::vector<int64_t>& rows_left) {
  std::vector<PassCandidate> candidates;
  for (const int64_t rows : rows_left) candidates.push_back({.extend_rows = rows});
  return candidates;
}

struct PlanCase {
  std::string name;
  PassLimits limits;
  std::vector<int64_t> rows_left;
  std::vector<PassShare> plan;
};

class PlanPassTest : public ::testing::TestWithParam<PlanCase> {};

TEST_P(PlanPassTest, SharesOutAPass) {
  const PlanCase& c = GetParam();
  // A single client's rounds have nobody to take turns with.
  for (const uint64_t pass : {0, 1, 7}) {
    EXPECT_EQ(PlanPass(RoundsOfOneClient(c.rows_left), c.limits, pass), c.plan);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, PlanPassTest,
    ::testing::ValuesIn(std::vector<PlanCase>{
        {"NothingToDo", Limits(8, 4), {}, {}},
        {"ExtendAndDraftRowsShareAPass", Limits(8, 4), {0, 3, 0}, {{0, 0}, {1, 3}, {2, 0}}},
        {"ALonePromptTakesAllRows", Limits(8, 4), {100}, {{0, 8}}},
        {"DraftRowsTakeNothingFromTheRows", Limits(8, 4), {0, 100}, {{0, 0}, {1, 8}}},
        {"ShortExtendsAreTakenWholeAndThePromptGetsTheRest",
         Limits(8, 4),
         {100, 2, 1},
         {{0, 5}, {1, 2}, {2, 1}}},
        {"LongPromptsShareInEqualParts", Limits(9, 4), {100, 50, 70}, {{0, 3}, {1, 3}, {2, 3}}},
        {"TheRemainderGoesToTheLongest", Limits(8, 4), {100, 50, 70}, {{0, 3}, {1, 2}, {2, 3}}},
        {"APromptIsNeverWithoutARow", Limits(2, 4), {100, 90}, {{0, 1}, {1, 1}}},
        {"MoreExtendsThanRowsLeavesTheLongestOut", Limits(2, 9), {5, 9, 7}, {{0, 1}, {2, 1}}},
        {"DraftRowsComeFirstWhenPlacesAreFew", Limits(8, 2), {0, 3, 0}, {{0, 0}, {2, 0}}},
        {"ShortExtendsComeBeforeLongOnes", Limits(8, 2), {0, 90, 3}, {{0, 0}, {2, 3}}},
        {"TheOldestHasItsPlaceWhateverItNeeds", Limits(8, 2), {90, 0, 0, 0}, {{0, 8}, {1, 0}}},
        {"OlderComesFirstAmongEquals", Limits(8, 2), {3, 3, 3}, {{0, 3}, {1, 3}}},
        {"OnePlaceGoesToTheOldest", Limits(8, 1), {90, 0, 1}, {{0, 8}}},
    }),
    [](const auto& test) { return test.param.name; });

struct ClientCase {
  std::string name;
  PassLimits limits;
  std::vector<PassCandidate> candidates;
  std::vector<PassShare> plan;
};

class PlanPassForClientsTest : public ::testing::TestWithParam<ClientCase> {};

TEST_P(PlanPassForClientsTest, SharesOutAPass) {
  const ClientCase& c = GetParam();
  EXPECT_EQ(PlanPass(c.candidates, c.limits, 0), c.plan);
}

PassCandidate Prompt(int64_t rows, int32_t client, int32_t weight = 1) {
  return {.extend_rows = rows, .client = client, .weight = weight};
}

PassCandidate Level(int32_t draft_rows, int32_t client, int32_t weight = 1) {
  return {.draft_rows = draft_rows, .client = client, .weight = weight};
}

INSTANTIATE_TEST_SUITE_P(Cases, PlanPassForClientsTest,
                         ::testing::ValuesIn(std::vector<ClientCase>{
                             {"MorePromptsDoNotMakeAClientsShareLarger",
                              Limits(12, 9),
                              {Prompt(99, 7), Prompt(99, 7), Prompt(99, 7), Prompt(99, 3)},
                              {{0, 2}, {1, 2}, {2, 2}, {3, 6}}},
                             {"AWeightIsAShareOfTheRows",
                              Limits(12, 9),
                              {Prompt(99, 1), Prompt(99, 2, 3)},
                              {{0, 3}, {1, 9}}},
                             {"WhatOneClientDoesNotNeedGoesToTheOthersByWeight",
                              Limits(14, 9),
                              {Prompt(2, 1, 5), Prompt(99, 2, 1), Prompt(99, 3, 3)},
                              {{0, 2}, {1, 3}, {2, 9}}},
                             {"AClientWithoutRowsForAllItsPromptsLeavesTheLongestOut",
                              Limits(4, 9),
                              {Prompt(50, 1), Prompt(60, 1), Prompt(40, 1), Prompt(99, 2)},
                              {{0, 1}, {2, 1}, {3, 2}}},
                             {"TheOldestGetsARowWhateverItsWeight",
                              Limits(4, 9),
                              {Prompt(50, 1), Prompt(60, 2, 1000)},
                              {{0, 1}, {1, 3}}},
                             {"PlacesGoToTheClientsInTurn",
                              Limits(8, 3),
                              {Level(1, 1), Level(1, 1), Level(1, 1), Level(1, 2), Prompt(5, 2)},
                              {{0, 0}, {1, 0}, {3, 0}}},
                             {"AWeightIsAShareOfThePlaces",
                              Limits(8, 4),
                              {Level(1, 1), Level(1, 1), Level(1, 2, 3), Level(1, 2, 3),
                               Level(1, 2, 3), Level(1, 2, 3)},
                              {{0, 0}, {2, 0}, {3, 0}, {4, 0}}},
                             {"ALevelThatDoesNotFitLeavesItsRoomToASmallerOne",
                              Limits(8, 9, 11),
                              {Level(6, 1), Level(6, 1), Level(4, 1), Level(1, 2)},
                              {{0, 0}, {2, 0}, {3, 0}}},
                             {"ALevelAboveTheBoundRunsAlone",
                              Limits(8, 9, 10),
                              {Prompt(3, 2), Level(11, 1), Level(1, 2)},
                              {{0, 3}, {1, 0}}},
                             {"TheOldestDraftsWhateverTheBound",
                              Limits(8, 9, 10),
                              {Level(11, 1), Prompt(3, 1), Level(1, 1)},
                              {{0, 0}, {1, 3}}},
                         }),
                         [](const auto& test) { return test.param.name; });

// Whatever the limits and however many short calls keep coming: everyone gets through.
TEST(PlanPassTest, StarvesNobodyUnderAStreamOfShortCalls) {
  const PassLimits limits = Limits(4, 2);
  std::vector<int64_t> rows_left = {40, 30};  // two prompts
  const auto prompt_left = [&] {
    return std::any_of(rows_left.begin(), rows_left.end(), [](int64_t rows) { return rows > 1; });
  };
  for (int passes = 0; prompt_left(); ++passes) {
    ASSERT_LT(passes, 40) << "a prompt did not get through";
    while (rows_left.size() < 6) rows_left.push_back(1);
    for (const PassShare& share : PlanPass(RoundsOfOneClient(rows_left), limits, passes)) {
      rows_left[share.candidate] -= share.rows;
    }
    std::erase(rows_left, 0);
  }
}

}  // namespace
}  // namespace aerie
