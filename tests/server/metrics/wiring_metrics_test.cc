// What the page says of the live guard.
#include <cmath>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/metrics/prometheus_observer.h"
#include "tests/server/metrics/exposition.h"

namespace aerie {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

PrometheusOptions OptionsWith(WiringFacts wiring) {
  PrometheusOptions options;
  options.labels = {.drafter = "demo", .version = "0f3a", .target = "model"};
  options.wiring = std::move(wiring);
  return options;
}

class WiringMetricsTest : public ::testing::Test {
 protected:
  Exposition Scrape() const { return Exposition(*observer_.metrics()); }

  PrometheusObserver observer_{OptionsWith({.mode = "alert",
                                            .captures = 3,
                                            .expected_rms = {2.5, 6.25, 23.0},
                                            .expected_accept_length = 1.75})};
};

TEST_F(WiringMetricsTest, SayWhatTheGuardDoesAndWhatWasPromised) {
  const Exposition scrape = Scrape();
  EXPECT_EQ(scrape.Sum("aerie_wiring_guard_info", {{"mode", "alert"}, {"drafter", "demo"}}), 1);
  EXPECT_EQ(scrape.Sum("aerie_wiring_expected_accept_length"), 1.75);
  EXPECT_EQ(scrape.Sum("aerie_hidden_row_rms_expected", {{"capture", "1"}}), 6.25);
  EXPECT_EQ(scrape.Count("aerie_hidden_row_rms_expected"), 3);
}

TEST_F(WiringMetricsTest, AreThereBeforeAnybodyCame) {
  const Exposition scrape = Scrape();
  EXPECT_THAT(scrape.ValuesOf("aerie_wiring_sources", "state"),
              UnorderedElementsAre("unknown", "ok", "suspect", "wrong"));
  EXPECT_EQ(scrape.Sum("aerie_wiring_sources"), 0);
  EXPECT_EQ(scrape.Sum("aerie_wiring_state"), 1);
  EXPECT_EQ(scrape.Sum("aerie_wiring_state", {{"state", "unknown"}}), 1);
  EXPECT_THAT(scrape.ValuesOf("aerie_wiring_checks_total", "result"),
              UnorderedElementsAre("fits", "odd", "off"));
  EXPECT_THAT(scrape.ValuesOf("aerie_wiring_alarms_total", "state"),
              UnorderedElementsAre("suspect", "wrong"));
  EXPECT_THAT(scrape.ValuesOf("aerie_wiring_place_position", "capture"),
              UnorderedElementsAre("0", "1", "2"));
  EXPECT_EQ(scrape.Sum("aerie_hidden_row_rms"), 0);
}

TEST_F(WiringMetricsTest, FollowTheGuard) {
  observer_.OnSummary(
      {.sources = {1, 4, 0, 2}, .worst = WiringState::kWrong, .positions = {0.125, -0.25, 1.5}});
  observer_.OnVote(VoteOutcome::kFits);
  observer_.OnVote(VoteOutcome::kFits);
  observer_.OnVote(VoteOutcome::kOff);
  observer_.OnState(WiringState::kSuspect);
  observer_.OnState(WiringState::kWrong);
  observer_.OnState(WiringState::kWrong);
  observer_.OnState(WiringState::kOk);
  observer_.OnRowSizes({1.5, 2.5, 3.5});
  const Exposition scrape = Scrape();
  EXPECT_EQ(scrape.Sum("aerie_wiring_sources", {{"state", "unknown"}}), 1);
  EXPECT_EQ(scrape.Sum("aerie_wiring_sources", {{"state", "ok"}}), 4);
  EXPECT_EQ(scrape.Sum("aerie_wiring_sources", {{"state", "suspect"}}), 0);
  EXPECT_EQ(scrape.Sum("aerie_wiring_sources", {{"state", "wrong"}}), 2);
  EXPECT_EQ(scrape.Sum("aerie_wiring_state"), 1);
  EXPECT_EQ(scrape.Sum("aerie_wiring_state", {{"state", "wrong"}}), 1);
  EXPECT_EQ(scrape.Sum("aerie_wiring_place_position", {{"capture", "1"}}), -0.25);
  EXPECT_EQ(scrape.Sum("aerie_wiring_place_position", {{"capture", "2"}}), 1.5);
  EXPECT_EQ(scrape.Sum("aerie_wiring_checks_total", {{"result", "fits"}}), 2);
  EXPECT_EQ(scrape.Sum("aerie_wiring_checks_total", {{"result", "odd"}}), 0);
  EXPECT_EQ(scrape.Sum("aerie_wiring_checks_total", {{"result", "off"}}), 1);
  EXPECT_EQ(scrape.Sum("aerie_wiring_alarms_total", {{"state", "suspect"}}), 1);
  EXPECT_EQ(scrape.Sum("aerie_wiring_alarms_total", {{"state", "wrong"}}), 2);
  EXPECT_EQ(scrape.Sum("aerie_hidden_row_rms", {{"capture", "2"}}), 3.5);
}

TEST_F(WiringMetricsTest, ForgetThePositionsOfASourceThatIsGone) {
  observer_.OnSummary({.worst = WiringState::kWrong, .positions = {1, 1, 1}});
  observer_.OnSummary({});
  EXPECT_EQ(Scrape().Sum("aerie_wiring_place_position"), 0);
}

TEST(WiringMetricsWithoutProfileTest, PromiseNothing) {
  const PrometheusObserver observer(OptionsWith({.mode = "alert", .captures = 3}));
  const Exposition scrape(*observer.metrics());
  EXPECT_THAT(scrape.text(), Not(HasSubstr("aerie_hidden_row_rms_expected")));
  EXPECT_THAT(scrape.text(), Not(HasSubstr("aerie_wiring_expected_accept_length")));
  EXPECT_EQ(scrape.Count("aerie_hidden_row_rms"), 3);
}

TEST(WiringMetricsOfAGuardThatIsOffTest, SayThatAlone) {
  const PrometheusObserver observer(OptionsWith({}));
  const Exposition scrape(*observer.metrics());
  EXPECT_EQ(scrape.Sum("aerie_wiring_guard_info", {{"mode", "off"}}), 1);
  EXPECT_EQ(scrape.Count("aerie_wiring_state"), 0);
  EXPECT_EQ(scrape.Count("aerie_wiring_sources"), 0);
}

}  // namespace
}  // namespace aerie
