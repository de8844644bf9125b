// From a verified recording to the profile that a running server compares rows with.
#include "server/verify/guard_record.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/guard/guard_profile_json.h"
#include "tests/server/verify/fake_head.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using testing::UnorderedElementsAre;

// A verified result over tensors of boundary 0, 1, 2, ... of which the head takes these.
VerifyResult VerifiedResult() {
  VerifyResult result;
  result.verdict = Verdict::kVerified;
  result.reference = 0;
  result.declared = {{"output-of-layer", "[3, 1]", 0, ""}};
  result.candidates.emplace_back();
  result.candidates[0].mean_log_likelihood = -2.0;
  result.candidates[0].depths = DepthScores{9, {0.5, 0.25}, {-2.0, -3.0}, {0.5, 0.2}, 1.7};
  return result;
}

Reading ReadingOf(std::vector<int32_t> tensors, int32_t shift = 0) {
  Reading reading;
  std::vector<Capture> captures;
  for (const int32_t tensor : tensors) captures.push_back(Capture::Boundary(tensor));
  reading.wiring = *Wiring::Create(std::move(captures), 12);
  reading.candidate = Candidate{std::move(tensors), shift};
  return reading;
}

// Rows of a real target vary.
void AddNoise(FakeRecording& recording) {
  uint64_t key = 0;
  for (std::vector<float>& values : recording.captures.made) {
    for (float& value : values) value += static_cast<float>(HashNoise(++key));
  }
}

TEST(MakeGuardProfileTest, HoldsTheHeadsCapturesAndAllOthersThatNothingContradicts) {
  FakeRecording states(5, 3);
  AddNoise(states);
  VerifyResult result = VerifiedResult();
  result.labels = {{states.captures.tensors[4].name, "", "", LabelVerdict::kContradicted, ""}};
  const auto text = MakeGuardProfile(result, states.captures, {ReadingOf({3, 1})});
  ASSERT_THAT(text, IsOk());
  const auto profile = GuardProfileOf(
      *text, *Wiring::Create({Capture::Boundary(3), Capture::Boundary(1)}, 12), FakeHead::kHidden);
  ASSERT_THAT(profile, IsOk());
  std::vector<Capture> others;
  for (const auto& other : profile->places[0].alternatives) others.push_back(other.capture);
  EXPECT_THAT(others,
              ElementsAre(Capture::Boundary(0), Capture::Boundary(1), Capture::Boundary(2)));
  EXPECT_EQ(profile->sequences, 3);
  ASSERT_TRUE(profile->expectation.has_value());
  EXPECT_EQ(profile->expectation->accuracy, 0.5);
  EXPECT_EQ(profile->expectation->log_likelihood, -2.0);
  EXPECT_DOUBLE_EQ(profile->expectation->AcceptLength(), 1.7);
}

TEST(MakeGuardProfileTest, BelievesTheMeasurementBeforeALabel) {
  FakeRecording states(4, 3);
  AddNoise(states);
  // The head was measured to want tensor 2 as boundary 3, and tensor 3 says that it is that.
  Reading reading = ReadingOf({3});
  reading.candidate = Candidate{{2}, 0};
  const auto text = MakeGuardProfile(VerifiedResult(), states.captures, {reading});
  ASSERT_THAT(text, IsOk());
  const auto profile = GuardProfileFromJson(*text);
  ASSERT_THAT(profile, IsOk());
  std::vector<Capture> others;
  for (const auto& other : profile->places[0].alternatives) others.push_back(other.capture);
  EXPECT_THAT(others, UnorderedElementsAre(Capture::Boundary(0), Capture::Boundary(1)));
}

TEST(MakeGuardProfileTest, IsNotMadeOfARecordingThatIsOffByAToken) {
  const FakeRecording states(3, 3);
  EXPECT_THAT(MakeGuardProfile(VerifiedResult(), states.captures, {ReadingOf({1}, 1)}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(MakeGuardProfileTest, IsNotMadeOfTooFewRows) {
  FakeRecording states(3, 1);
  AddNoise(states);
  EXPECT_THAT(MakeGuardProfile(VerifiedResult(), states.captures, {ReadingOf({1})}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace aerie
