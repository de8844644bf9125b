// The guard behind the engine's observer, and what it tells metrics.
#include "server/guard/live_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "tests/server/guard/synthetic_target.h"

namespace aerie {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class NotingObserver : public WiringObserver {
 public:
  void OnVote(VoteOutcome) override { ++votes; }
  void OnState(WiringState state) override { states.push_back(state); }
  void OnSummary(const WiringSummary&) override {}
  void OnRowSizes(absl::Span<const double> rms) override {
    sizes.assign(rms.begin(), rms.end());
    ++size_calls;
  }

  int votes = 0, size_calls = 0;
  std::vector<WiringState> states;
  std::vector<double> sizes;
};

class LiveGuardTest : public ::testing::Test {
 protected:
  LiveGuardTest() { manifest_.target_id = "synthetic"; }

  std::unique_ptr<RowWatch> Watch(const std::string& client) {
    return guard_.Watch({.client = client, .manifest = manifest_}, absl::UnixEpoch());
  }

  // Texts of 80 tokens, a row a call, as taken from these captures.
  void Serve(const std::string& client, const std::vector<Capture>& captures, uint32_t first,
             uint32_t texts) {
    for (uint32_t text = first; text < first + texts; ++text) {
      const std::vector<int32_t> tokens = SyntheticTarget::Tokens(text, 80);
      std::vector<std::string> parts;
      for (const Capture& capture : captures) {
        parts.push_back(SyntheticTarget::States(text, tokens, capture));
      }
      const auto watch = Watch(client);
      const size_t bytes = SyntheticTarget::kHidden * sizeof(float);
      for (int64_t row = 0; row < 78; ++row) {
        std::string joined;
        for (const std::string& part : parts) {
          joined += part.substr(static_cast<size_t>(row) * bytes, bytes);
        }
        const auto view = HiddenRows::Create(DType::kF32, 1, 3 * SyntheticTarget::kHidden, joined);
        watch->OnRows(row, {tokens[static_cast<size_t>(row) + 1]}, *view, absl::UnixEpoch());
        watch->OnJudgement({.proposed = 3, .depth = 3, .accepted = 1}, absl::UnixEpoch());
      }
    }
  }

  NotingObserver observer_;
  std::vector<WiringState> worst_;
  Manifest manifest_;
  LiveGuard guard_{{.profile = SyntheticTarget::Profile(),
                    .captures = 3,
                    .observer = &observer_,
                    .on_worst = [this](WiringState state) { worst_.push_back(state); }}};
};

TEST_F(LiveGuardTest, KnowsGoodRowsFromSwappedOnesByClient) {
  Serve("good", SyntheticTarget::Declared().captures(), 100, 6);
  EXPECT_THAT(worst_, ElementsAre(WiringState::kOk));
  Serve("bad", {Capture::Boundary(2), Capture::Boundary(10), Capture::Boundary(6)}, 200, 6);
  EXPECT_EQ(guard_.WorstState(), WiringState::kWrong);
  EXPECT_EQ(worst_.back(), WiringState::kWrong);
  const std::vector<WiringReport> reports = guard_.Reports();
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].client, "bad");
  EXPECT_EQ(reports[0].target, "synthetic");
  EXPECT_EQ(reports[0].state, WiringState::kWrong);
  EXPECT_EQ(reports[1].state, WiringState::kOk);
  ASSERT_TRUE(reports[1].drafting.has_value());
  EXPECT_GT(reports[1].drafting->judged, 100);
  EXPECT_GT(observer_.votes, 20);
}

// As wide as captures are, so that nothing but the manifest tells them apart.
TEST_F(LiveGuardTest, OfFusedRowsNothingIsEverKnown) {
  manifest_.fused_width = 3 * SyntheticTarget::kHidden;
  Serve("fused", SyntheticTarget::Declared().captures(), 100, 6);
  Serve("swapped", {Capture::Boundary(2), Capture::Boundary(10), Capture::Boundary(6)}, 200, 6);
  const std::vector<WiringReport> reports = guard_.Reports();
  ASSERT_EQ(reports.size(), 2u);
  for (const WiringReport& report : reports) {
    EXPECT_EQ(report.target, "synthetic (fused)");
    EXPECT_EQ(report.state, WiringState::kUnknown);
    EXPECT_EQ(report.verdict.substr(0, 20), "unknown: fused rows;");
    EXPECT_GT(report.rows, 100);
    EXPECT_EQ(report.votes, 0);
  }
  EXPECT_EQ(guard_.WorstState(), WiringState::kUnknown);
  EXPECT_EQ(observer_.votes, 0);
  EXPECT_EQ(observer_.size_calls, 0);
  EXPECT_FALSE(guard_.TakeTrial().has_value());
  // Captures of the same client and target are a source of their own.
  manifest_.fused_width = 0;
  Serve("fused", SyntheticTarget::Declared().captures(), 300, 6);
  EXPECT_EQ(guard_.Reports().size(), 3u);
  EXPECT_EQ(guard_.WorstState(), WiringState::kUnknown) << "unknown is worse than ok";
}

TEST_F(LiveGuardTest, ForgetsWhoLeftWhenItsTimeHasCome) {
  Serve("bad", {Capture::Boundary(2), Capture::Boundary(10), Capture::Boundary(6)}, 200, 6);
  guard_.Tick(absl::UnixEpoch() + absl::Hours(1));
  EXPECT_THAT(guard_.Reports(), IsEmpty());
  EXPECT_EQ(worst_.back(), WiringState::kUnknown);
}

TEST_F(LiveGuardTest, TellsHowLargeRowsAreByPlace) {
  std::vector<float> row(3 * SyntheticTarget::kHidden);
  for (size_t i = 0; i < row.size(); ++i) {
    row[i] = (i % 2 == 0 ? 1.0f : -1.0f) * float(1 + i / SyntheticTarget::kHidden);
  }
  const std::string_view bytes(reinterpret_cast<const char*>(row.data()), 4 * row.size());
  const auto view = HiddenRows::Create(DType::kF32, 1, 3 * SyntheticTarget::kHidden, bytes);
  const auto watch = Watch("a");
  for (int64_t length = 0; length < 40; ++length) {
    watch->OnRows(length, {1}, *view, absl::UnixEpoch());
  }
  EXPECT_THAT(observer_.sizes,
              ElementsAre(DoubleNear(1, 1e-9), DoubleNear(2, 1e-9), DoubleNear(3, 1e-9)));
  EXPECT_EQ(observer_.size_calls, 5) << "of 36 calls past the first positions every eighth";
}

TEST_F(LiveGuardTest, TriesRowsOfASuspectInEveryOrderAndReportsTheBest) {
  EXPECT_FALSE(guard_.TakeTrial().has_value());
  Serve("bad", {Capture::Boundary(2), Capture::Boundary(10), Capture::Boundary(6)}, 200, 6);
  std::vector<std::string> tried;
  std::vector<int32_t> tokens;
  for (int order = 0; order < 6; ++order) {
    const std::optional<Trial> trial = guard_.TakeTrial();
    ASSERT_TRUE(trial.has_value());
    tried.emplace_back(trial->rows.bytes());
    if (order == 0) tokens = trial->tokens;
    EXPECT_EQ(trial->tokens, tokens);
    // 0, 2, 1 is the second of the orders; its rows are twice as likely.
    const std::vector<float> scores(tokens.size() - 1, order == 1 ? -1.0f : -2.0f);
    guard_.OnTrial(scores, absl::UnixEpoch());
  }
  EXPECT_EQ(std::set<std::string>(tried.begin(), tried.end()).size(), 6u);
  const WiringReport report = guard_.Reports().front();
  ASSERT_TRUE(report.replay.has_value());
  EXPECT_EQ(report.replay->answered, 1);
  EXPECT_EQ(report.replay->best, "in the order 0, 2, 1");
  EXPECT_NEAR(report.replay->gain, 1.0, 1e-6);
}

TEST_F(LiveGuardTest, DropsAReplayOfWhichOneTrialCannotBeRun) {
  Serve("bad", {Capture::Boundary(2), Capture::Boundary(10), Capture::Boundary(6)}, 200, 6);
  ASSERT_TRUE(guard_.TakeTrial().has_value());
  guard_.OnTrial({}, absl::UnixEpoch());
  EXPECT_FALSE(guard_.Reports().front().replay.has_value());
}

TEST(CaptureSizesTest, FollowRowsThatChange) {
  CaptureSizes sizes(2);
  const auto add = [&](float a, float b) {
    const float row[] = {a, a, b, b};
    const std::string_view bytes(reinterpret_cast<const char*>(row), sizeof(row));
    for (int i = 0; i < 8; ++i) sizes.Add(100, *HiddenRows::Create(DType::kF32, 1, 4, bytes));
  };
  EXPECT_THAT(sizes.Rms(), ElementsAre(0.0, 0.0));
  add(3, 4);
  EXPECT_THAT(sizes.Rms(), ElementsAre(3.0, 4.0)) << "the first row counts whole";
  for (int i = 0; i < 1000; ++i) add(1, 2);
  EXPECT_THAT(sizes.Rms(), ElementsAre(DoubleNear(1, 1e-3), DoubleNear(2, 1e-3)));
}

TEST(CaptureSizesTest, LookAtNoRowsOfAnotherWidthOrOfTheFirstPositions) {
  CaptureSizes sizes(3);
  const float row[] = {1, 2, 3, 4};
  const std::string_view bytes(reinterpret_cast<const char*>(row), sizeof(row));
  EXPECT_FALSE(sizes.Add(100, *HiddenRows::Create(DType::kF32, 1, 4, bytes)));
  EXPECT_FALSE(sizes.Add(3, *HiddenRows::Create(DType::kF32, 1, 3, bytes.substr(0, 12))));
  EXPECT_TRUE(sizes.Add(4, *HiddenRows::Create(DType::kF32, 1, 3, bytes.substr(0, 12))));
}

}  // namespace
}  // namespace aerie
