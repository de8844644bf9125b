// Two reports side by side. What is in them is held by report_test.cc.
#include "client/loadtest/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/loadtest/report.h"
#include "client/loadtest/sweep_report.h"

namespace aerie::loadtest {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A run of one second with `rounds` rounds of `latency` each.
Report RunOf(int rounds, absl::Duration latency) {
  Report report;
  report.result.seconds = absl::Seconds(1);
  MeasuredStats& m = report.result.measured;
  m.rounds = rounds;
  for (int i = 0; i < rounds; ++i) {
    m.round.Record(latency);
    m.round_intended.Record(latency);
  }
  return report;
}

const ComparedFigure& FigureOf(const Comparison& comparison, const std::string& name) {
  for (const ComparedFigure& figure : comparison.figures) {
    if (figure.name == name) return figure;
  }
  ADD_FAILURE() << name;
  return comparison.figures.front();
}

TEST(CompareTest, EqualReportsAreNotWorse) {
  const std::string json = ToJson(RunOf(100, absl::Milliseconds(5)));
  const auto comparison = Compare(json, json, 0.0);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_FALSE(comparison->worse());
  EXPECT_THAT(comparison->notes, IsEmpty());
}

TEST(CompareTest, KnowsWhichWayIsWorseAndForgivesTheTolerance) {
  const std::string before = ToJson(RunOf(100, absl::Milliseconds(10)));
  const std::string after = ToJson(RunOf(92, absl::Milliseconds(9)));
  const auto comparison = Compare(before, after, 0.05);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_TRUE(FigureOf(*comparison, "measured.rounds_per_second").worse);
  const ComparedFigure& p50 = FigureOf(*comparison, "latency_seconds.round_from_intended.p50");
  EXPECT_FALSE(p50.worse);
  EXPECT_TRUE(p50.better);
  EXPECT_NEAR(p50.change, -0.1, 0.002);
  EXPECT_TRUE(comparison->worse());
  EXPECT_THAT(ToTable(*comparison), HasSubstr("WORSE"));
  EXPECT_FALSE(Compare(before, after, 0.1)->worse());
  EXPECT_TRUE(Compare(after, before, 0.1)->worse()) << "the latency, the other way round";
}

TEST(CompareTest, FromNoErrorsToSomeIsWorseWhateverTheTolerance) {
  Report failing = RunOf(100, absl::Milliseconds(5));
  failing.result.whole.rounds = 100;
  failing.result.whole.failed_rounds = 1;
  const auto comparison = Compare(ToJson(RunOf(100, absl::Milliseconds(5))), ToJson(failing), 10);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_TRUE(FigureOf(*comparison, "verdicts.error_share").worse);
}

TEST(CompareTest, TellsWhatIsNotTheSame) {
  Report after = RunOf(100, absl::Milliseconds(5));
  after.options.k = 6;
  after.server.drafter_version = "abc";
  const auto comparison = Compare(ToJson(RunOf(100, absl::Milliseconds(5))), ToJson(after), 0);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_THAT(comparison->notes,
              ElementsAre(HasSubstr("server.drafter_version was \"\" and is \"abc\""),
                          HasSubstr("options.k was 4 and is 6")));
}

TEST(CompareTest, ComparesTheKneesOfSweeps) {
  SweepReport before;
  before.result.points = {{.level = 10, .rounds = 10, .p99 = absl::Milliseconds(4)}};
  before.result.knee = 0;
  SweepReport after = before;
  after.result.points[0].p99 = absl::Milliseconds(8);
  const auto comparison = Compare(ToJson(before), ToJson(after), 0.05);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_TRUE(FigureOf(*comparison, "knee.p99").worse);
  EXPECT_FALSE(FigureOf(*comparison, "knee.rounds_per_second").worse);
}

TEST(CompareTest, RefusesWhatIsNoReportOfThisVersion) {
  const std::string run = ToJson(RunOf(1, absl::Milliseconds(5)));
  auto old = nlohmann::json::parse(run);
  old["schema_version"] = 1;
  for (const std::string& other : {std::string("{}"), std::string("no json"), std::string(""),
                                   std::string("[1]"), old.dump(), ToJson(SweepReport())}) {
    const auto comparison = Compare(run, other, 0.05);
    EXPECT_EQ(comparison.status().code(), absl::StatusCode::kInvalidArgument) << other;
  }
  auto damaged = nlohmann::json::parse(run);
  damaged["measured"]["rounds_per_second"] = "many";
  EXPECT_THAT(std::string(Compare(run, damaged.dump(), 0.05).status().message()),
              HasSubstr("damaged"));
}

}  // namespace
}  // namespace aerie::loadtest
