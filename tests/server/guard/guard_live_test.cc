// The guard on hidden states of a real target: the promises of docs/wiring-guard.md, each measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <iostream>
#include <optional>

#include "common/check.h"
#include "server/guard/guard_profile_json.h"
#include "tests/server/guard/live_captures.h"

namespace aerie {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kSeeds = 5;

constexpr int32_t kFinalNorm = -1;

Capture B(int32_t boundary) { return Capture::Boundary(boundary); }

std::vector<Capture> CapturesOf(const std::array<int32_t, 3>& boundaries) {
  std::vector<Capture> captures;
  for (const int32_t b : boundaries) captures.push_back(b < 0 ? Capture::FinalNorm() : B(b));
  return captures;
}

const LiveCaptures& Captures() {
  static const LiveCaptures* const captures = [] {
    const char* folder = std::getenv("AERIE_GUARD_CAPTURES");
    AERIE_CHECK(folder != nullptr) << "AERIE_GUARD_CAPTURES is not set; run this through ctest";
    absl::StatusOr<LiveCaptures> loaded = LiveCaptures::Load(folder);
    AERIE_CHECK(loaded.ok()) << loaded.status().message();
    return new LiveCaptures(*std::move(loaded));
  }();
  return *captures;
}

// Through JSON, as a server gets it.
const GuardProfile& Profile() {
  static const GuardProfile* const profile = [] {
    absl::StatusOr<GuardProfile> made =
        Captures().MakeProfile(*Wiring::Create({B(2), B(15), B(27)}, 30), 12);
    AERIE_CHECK(made.ok()) << made.status().message();
    absl::StatusOr<GuardProfile> read = GuardProfileFromJson(GuardProfileToJson(*made));
    AERIE_CHECK(read.ok()) << read.status().message();
    return new GuardProfile(*std::move(read));
  }();
  return *profile;
}

struct Outcome {
  std::optional<int64_t> wrong_after;  // rounds
  WiringReport report;                 // at the end, or at the alarm
};

Outcome Serve(const Sending& sending, const std::string& kind, uint32_t seed, int64_t rounds) {
  WiringGuard guard({.profile = Profile(), .captures = 3});
  LiveWorker worker(Captures(), sending, kind, seed);
  Outcome outcome;
  for (int64_t round = 1; round <= rounds; ++round) {
    worker.Round(guard, absl::UnixEpoch() + absl::Seconds(round));
    if (guard.WorstState() != WiringState::kWrong) continue;
    outcome.wrong_after = round;
    break;
  }
  outcome.report = guard.Reports().front();
  return outcome;
}

struct PlantedCase {
  std::string name;
  std::array<int32_t, 3> boundaries;  // kFinalNorm: that
  int32_t token_shift;
  int64_t within;       // rounds
  std::string verdict;  // part of it
};

class PlantedWiringTest : public ::testing::TestWithParam<PlantedCase> {};

TEST_P(PlantedWiringTest, IsWrongInTimeAndNamed) {
  const PlantedCase& planted = GetParam();
  std::string rounds;
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    const Outcome outcome =
        Serve({CapturesOf(planted.boundaries), planted.token_shift}, "", seed, planted.within);
    ASSERT_TRUE(outcome.wrong_after.has_value())
        << "seed " << seed << ": " << outcome.report.verdict;
    EXPECT_THAT(outcome.report.verdict, HasSubstr(planted.verdict)) << "seed " << seed;
    rounds += " " + std::to_string(*outcome.wrong_after);
  }
  RecordProperty("rounds_to_alarm", rounds);
  std::cout << planted.name << ": alarm after" << rounds << " rounds\n";
}

INSTANTIATE_TEST_SUITE_P(
    Cases, PlantedWiringTest,
    ::testing::ValuesIn(std::vector<PlantedCase>{
        {"LastIsTheOutputOfTheLastLayer", {2, 15, 30}, 0, 200, "check the layer ids"},
        {"LastIsBoundary20", {2, 15, 20}, 0, 200, "check the layer ids"},
        {"LastIsBoundary16", {2, 15, 16}, 0, 200, "check the layer ids"},
        {"LastIsBoundary8", {2, 15, 8}, 0, 200, "check the layer ids"},
        {"LastIsTheFinalNorm", {2, 15, kFinalNorm}, 0, 200, "final norm is sent"},
        {"FirstIsTheFinalNorm", {kFinalNorm, 15, 27}, 0, 200, "[final norm, 15, 27]"},
        {"LastIsTheEmbedding", {2, 15, 0}, 0, 200, "the embedding is sent"},
        {"FirstIsTheEmbedding", {0, 15, 27}, 0, 200, "the embedding is sent"},
        {"EmbeddingAndTheFirstTwo", {0, 2, 15}, 0, 200, "the embedding is sent"},
        {"LastTwoSwapped", {2, 27, 15}, 0, 200, "rows look like"},
        {"FirstTwoSwapped", {15, 2, 27}, 0, 200, "captures 0 and 1 seem to be swapped"},
        {"Reversed", {27, 15, 2}, 0, 200, "captures 0 and 2 seem to be swapped"},
        {"TokensLagByOne", {2, 15, 27}, -1, 200, "tokens lag one behind"},
        {"TokensRunAheadByOne", {2, 15, 27}, 1, 200, "tokens run one ahead"},
        {"AllOneLayerEarlier", {1, 14, 26}, 0, 2000, "one layer earlier"},
        {"AllOneLayerLater", {3, 16, 28}, 0, 2000, "one layer later"},
        {"LastIsOneLayerEarlier", {2, 15, 26}, 0, 2000, "check the layer ids"},
        {"LastIsOneLayerLater", {2, 15, 28}, 0, 2000, "rows look like [2, 15, 28]"},
        {"MiddleIsOneLayerEarlier", {2, 14, 27}, 0, 2000, "rows look like [2, 14, 27]"},
        {"MiddleIsOneLayerLater", {2, 16, 27}, 0, 2000, "rows look like [2, 16, 27]"},
    }),
    [](const auto& test) { return test.param.name; });

TEST(HonestWorkerTest, RaisesNoAlarmInTenThousandRoundsOfOtherTexts) {
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    const Outcome outcome = Serve({{B(2), B(15), B(27)}}, "", seed, 10'000);
    EXPECT_FALSE(outcome.wrong_after.has_value())
        << "seed " << seed << ", round " << *outcome.wrong_after << ": " << outcome.report.verdict;
    EXPECT_EQ(outcome.report.state, WiringState::kOk) << outcome.report.verdict;
  }
}

TEST(HonestWorkerTest, RaisesNoAlarmWhateverItsOneKindOfText) {
  for (const std::string& kind : Captures().Kinds()) {
    for (uint32_t seed = 1; seed <= 3; ++seed) {
      const Outcome outcome = Serve({{B(2), B(15), B(27)}}, kind, seed, 3'000);
      EXPECT_FALSE(outcome.wrong_after.has_value())
          << kind << ", round " << *outcome.wrong_after << ": " << outcome.report.verdict;
    }
  }
}

TEST(SparseRecordingTest, StillShowsPlainFaultsAndNoFalseOnes) {
  // Only what the drafter wants and the final norm: no neighbours to compare with.
  absl::StatusOr<GuardProfile> profile = Captures().MakeProfile(
      *Wiring::Create({B(2), B(15), B(27)}, 30), 12, {B(2), B(15), B(27), Capture::FinalNorm()});
  ASSERT_TRUE(profile.ok()) << profile.status();
  const auto state_after = [&](std::vector<Capture> captures, int64_t rounds) {
    WiringGuard guard({.profile = *profile, .captures = 3});
    LiveWorker worker(Captures(), {std::move(captures)}, "", 1);
    for (int64_t i = 0; i < rounds; ++i) worker.Round(guard, absl::UnixEpoch());
    return guard.WorstState();
  };
  EXPECT_EQ(state_after({B(2), B(27), B(15)}, 200), WiringState::kWrong);
  EXPECT_EQ(state_after({B(2), B(15), Capture::FinalNorm()}, 200), WiringState::kWrong);
  EXPECT_EQ(state_after({B(0), B(2), B(15)}, 200), WiringState::kWrong);
  EXPECT_EQ(state_after({B(2), B(15), B(27)}, 10'000), WiringState::kOk);
}

}  // namespace
}  // namespace aerie
