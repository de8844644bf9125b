#include "server/config/guard_setup.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/guard/guard_profile_json.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using absl::StatusCode;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Wiring Declared() { return *Wiring::Create({Capture::Boundary(2), Capture::Boundary(6)}, 8); }

std::string ProfileText() {
  GuardProfile profile{.hidden_size = 4, .channels = {0}, .rows = 321, .sequences = 7};
  for (const int32_t boundary : {2, 6}) {
    profile.places.push_back({.capture = Capture::Boundary(boundary),
                              .center = {0},
                              .scale = {1},
                              .size = {1},
                              .rms = boundary + 0.5,
                              .alternatives = {{Capture::FinalNorm(), {1.0f}, 0.0f, true}},
                              .landmarks = {0, 1},
                              .landmark_sizes = {1, 1}});
  }
  profile.expectation = DraftingExpectation{0.5, -2.0, {0.5, 0.25}};
  return GuardProfileToJson(profile);
}

TEST(LoadGuardProfileTest, ReadsWhatWiringJsonHolds) {
  const auto profile = LoadGuardProfile(GuardMode::kNotServing, ProfileText(), Declared(), 4);
  ASSERT_THAT(profile, IsOk());
  ASSERT_TRUE(profile->has_value());
  EXPECT_EQ((*profile)->rows, 321);
}

TEST(LoadGuardProfileTest, IsNotBotheredWhenTheGuardIsOff) {
  const auto profile = LoadGuardProfile(GuardMode::kOff, "{", Declared(), 4);
  ASSERT_THAT(profile, IsOk());
  EXPECT_FALSE(profile->has_value());
}

TEST(LoadGuardProfileTest, RefusesAProfileThatCannotBeReadAndSaysHowToGoOn) {
  for (const auto& [text, hidden] :
       {std::pair<std::string, int32_t>{"{}", 4}, {ProfileText(), 5}}) {
    const absl::Status status =
        LoadGuardProfile(GuardMode::kAlert, text, Declared(), hidden).status();
    EXPECT_THAT(status, StatusIs(StatusCode::kInvalidArgument));
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("wiring.json"), HasSubstr("--wiring-guard off")));
  }
}

TEST(LoadGuardProfileTest, DoesWithoutOneUnlessHealthHangsOnIt) {
  const auto alert = LoadGuardProfile(GuardMode::kAlert, "", Declared(), 4);
  ASSERT_THAT(alert, IsOk());
  EXPECT_FALSE(alert->has_value());
  const absl::Status status = LoadGuardProfile(GuardMode::kNotServing, "", Declared(), 4).status();
  EXPECT_THAT(status, StatusIs(StatusCode::kInvalidArgument));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("--wiring-guard is not-serving"), HasSubstr("; expected "),
                    HasSubstr("aerie-verify --write-wiring")));
}

TEST(DescribeGuardTest, SaysWhatItWillSee) {
  const auto profile = LoadGuardProfile(GuardMode::kAlert, ProfileText(), Declared(), 4);
  EXPECT_THAT(DescribeGuard(GuardMode::kAlert, *profile),
              AllOf(HasSubstr("alert"), HasSubstr("321 recorded ones of 7 sequences")));
  EXPECT_THAT(DescribeGuard(GuardMode::kAlert, std::nullopt), HasSubstr("without a profile"));
  EXPECT_EQ(DescribeGuard(GuardMode::kOff, std::nullopt), "wiring guard: off");
}

TEST(WiringFactsOfTest, ArePartOfTheProfile) {
  const auto profile = LoadGuardProfile(GuardMode::kAlert, ProfileText(), Declared(), 4);
  const WiringFacts facts = WiringFactsOf(GuardMode::kAlert, Declared(), *profile);
  EXPECT_EQ(facts.mode, "alert");
  EXPECT_EQ(facts.captures, 2);
  EXPECT_THAT(facts.expected_rms, ElementsAre(2.5, 6.5));
  EXPECT_EQ(facts.expected_accept_length, 1.75);
  const WiringFacts off = WiringFactsOf(GuardMode::kOff, Declared(), std::nullopt);
  EXPECT_EQ(off.captures, 0);
  EXPECT_THAT(off.expected_rms, IsEmpty());
}

}  // namespace
}  // namespace aerie
