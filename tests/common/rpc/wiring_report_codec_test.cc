#include "common/rpc/wiring_report_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace aerie::rpc {
namespace {

using ::testing::ElementsAre;

// Every number another one, so that two that change places are seen.
WiringReport FullReport() {
  WiringReport report{.client = "worker", .target = "model"};
  report.state = WiringState::kWrong;
  report.since = absl::FromUnixMillis(1'700'000'001'250);
  report.verdict = "rows look like another layer";
  report.rounds = 11;
  report.rows = 12;
  report.sampled_rows = 13;
  report.votes = 14;
  report.odd_votes = 15;
  report.sessions = 16;
  report.places = {{Capture::Boundary(27), Capture::FinalNorm(), 0.75, 0.5},
                   {Capture::Boundary(2), Capture::Boundary(3), 1.25, 1.5}};
  report.one_layer_earlier = -0.25;
  report.one_layer_later = 0.875;
  report.alignment = AlignmentReport{0.3, 0.9, 0.95, 17};
  report.drafting = DraftingReport{.expected_accuracy = 0.4,
                                   .expected_log_likelihood = -2.5,
                                   .expected_accept_length = 1.6,
                                   .accuracy = 0.1,
                                   .log_likelihood = -6.0,
                                   .accept_length = 1.1,
                                   .acceptance = {0.1, 0.05},
                                   .expected = {0.4, 0.15},
                                   .judged = 18,
                                   .worker_counts = 19,
                                   .worker_differs = 20,
                                   .below_expectation = true};
  report.replay = ReplayReport{21, "in the order 1, 0", 3.5};
  return report;
}

TEST(WiringReportCodecTest, TellsAllThatAReportHolds) {
  v1::WiringReport out;
  EncodeWiringReport(FullReport(), &out);
  EXPECT_EQ(out.client(), "worker");
  EXPECT_EQ(out.target(), "model");
  EXPECT_EQ(out.state(), v1::WIRING_STATE_WRONG);
  EXPECT_EQ(out.since().seconds(), 1'700'000'001);
  EXPECT_EQ(out.since().nanos(), 250'000'000);
  EXPECT_EQ(out.verdict(), "rows look like another layer");
  EXPECT_THAT((std::vector<uint64_t>{out.rounds(), out.rows(), out.sampled_rows(), out.votes(),
                                     out.odd_votes(), out.sessions()}),
              ElementsAre(11, 12, 13, 14, 15, 16));
  ASSERT_EQ(out.places_size(), 2);
  EXPECT_EQ(out.places(0).declared().boundary(), 27);
  EXPECT_EQ(out.places(0).looks_like().kind(), v1::CAPTURE_KIND_FINAL_NORM);
  EXPECT_EQ(out.places(0).position(), 0.75);
  EXPECT_EQ(out.places(0).size(), 0.5);
  EXPECT_EQ(out.places(1).looks_like().boundary(), 3);
  EXPECT_EQ(out.one_layer_earlier(), -0.25);
  EXPECT_EQ(out.one_layer_later(), 0.875);
  EXPECT_EQ(out.alignment().preceding(), 0.3);
  EXPECT_EQ(out.alignment().own(), 0.9);
  EXPECT_EQ(out.alignment().earlier(), 0.95);
  EXPECT_EQ(out.alignment().pairs(), 17);
  const v1::DraftingReport& drafting = out.drafting();
  EXPECT_THAT((std::vector<double>{drafting.expected_accuracy(), drafting.expected_log_likelihood(),
                                   drafting.expected_accept_length(), drafting.accuracy(),
                                   drafting.log_likelihood(), drafting.accept_length()}),
              ElementsAre(0.4, -2.5, 1.6, 0.1, -6.0, 1.1));
  EXPECT_THAT(drafting.acceptance(), ElementsAre(0.1, 0.05));
  EXPECT_THAT(drafting.expected_acceptance(), ElementsAre(0.4, 0.15));
  EXPECT_THAT((std::vector<uint64_t>{drafting.judged(), drafting.worker_counts(),
                                     drafting.worker_differs()}),
              ElementsAre(18, 19, 20));
  EXPECT_TRUE(drafting.below_expectation());
  EXPECT_EQ(out.replay().answered(), 21);
  EXPECT_EQ(out.replay().best(), "in the order 1, 0");
  EXPECT_EQ(out.replay().gain(), 3.5);
}

TEST(WiringReportCodecTest, LeavesOutWhatIsNotKnown) {
  v1::WiringReport out;
  EncodeWiringReport(WiringReport{}, &out);
  EXPECT_EQ(out.state(), v1::WIRING_STATE_UNKNOWN);
  EXPECT_FALSE(out.has_since());
  EXPECT_FALSE(out.has_one_layer_earlier());
  EXPECT_FALSE(out.has_one_layer_later());
  EXPECT_FALSE(out.has_alignment());
  EXPECT_FALSE(out.has_drafting());
  EXPECT_FALSE(out.has_replay());
}

TEST(WiringReportCodecTest, ListsReportsWithTheWorstState) {
  WiringReport calm;
  calm.state = WiringState::kOk;
  const v1::GetWiringReportResponse response =
      EncodeWiringReports({calm, FullReport()}, WiringState::kWrong);
  ASSERT_EQ(response.reports_size(), 2);
  EXPECT_EQ(response.reports(0).state(), v1::WIRING_STATE_OK);
  EXPECT_EQ(response.worst(), v1::WIRING_STATE_WRONG);
  EXPECT_EQ(EncodeWiringState(WiringState::kSuspect), v1::WIRING_STATE_SUSPECT);
}

TEST(WiringReportCodecTest, NamesEveryMode) {
  EXPECT_EQ(EncodeGuardMode(GuardMode::kOff), v1::WIRING_GUARD_MODE_OFF);
  EXPECT_EQ(EncodeGuardMode(GuardMode::kAlert), v1::WIRING_GUARD_MODE_ALERT);
  EXPECT_EQ(EncodeGuardMode(GuardMode::kNotServing), v1::WIRING_GUARD_MODE_NOT_SERVING);
}

}  // namespace
}  // namespace aerie::rpc
