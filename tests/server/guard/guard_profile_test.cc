#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "server/guard/guard_profile_builder.h"
#include "server/guard/guard_profile_json.h"
#include "server/guard/row_sketch.h"
#include "tests/server/guard/synthetic_target.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using ::testing::Pointwise;

// INVALID_ARGUMENT with `part` in a message of three parts.
MATCHER_P(IsRefusedFor, part, std::string("is refused for ") + part) {
  const absl::Status& status = StatusOf(arg);
  *result_listener << status.ToString();
  const std::string message(status.message());
  const size_t expected = message.find("; expected ");
  return status.code() == absl::StatusCode::kInvalidArgument &&
         message.find(part) != std::string::npos && expected != std::string::npos &&
         message.find("; ", expected + 2) != std::string::npos;
}

const GuardProfile& Profile() {
  static const GuardProfile* const profile = new GuardProfile(SyntheticTarget::Profile());
  return *profile;
}

// Where a text that the profile was not made from lies, at the second place of the wiring.
PlaceVote VoteOfOtherText(const Capture& sent) {
  GuardProfile middle = Profile();
  middle.places = {middle.places[1]};
  const std::vector<int32_t> tokens = SyntheticTarget::Tokens(77, 100);
  const std::string bytes = SyntheticTarget::States(77, tokens, sent);
  const HiddenRows rows = *HiddenRows::Create(DType::kF32, 100, SyntheticTarget::kHidden, bytes);
  RowSketch sketch(middle);
  for (int64_t row = kFirstComparedPosition; row < 100; ++row) sketch.Add(rows, row, std::nullopt);
  return sketch.Take().places.front();
}

TEST(GuardProfileTest, PutsRowsOfThePlaceAtZeroAndOfTheAlternativeAtOne) {
  const GuardPlace& place = Profile().places[1];
  for (size_t a = 0; a < place.alternatives.size(); ++a) {
    const GuardAlternative& alternative = place.alternatives[a];
    ASSERT_TRUE(alternative.told_apart) << alternative.capture.ToString();
    EXPECT_NEAR(VoteOfOtherText(place.capture).positions[a], 0.0, 0.35)
        << alternative.capture.ToString();
    EXPECT_NEAR(VoteOfOtherText(alternative.capture).positions[a], 1.0, 0.35)
        << alternative.capture.ToString();
  }
}

TEST(GuardProfileTest, NamesTheCaptureThatRowsAreOf) {
  const GuardPlace& place = Profile().places[1];
  for (size_t a = 0; a < place.alternatives.size(); ++a) {
    const PlaceVote vote = VoteOfOtherText(place.alternatives[a].capture);
    EXPECT_EQ(FindNearest(place, vote.positions, vote.size, Landmarks::kAll).landmark, a + 1)
        << place.alternatives[a].capture.ToString();
  }
  const PlaceVote own = VoteOfOtherText(place.capture);
  EXPECT_EQ(FindNearest(place, own.positions, own.size, Landmarks::kAll).landmark, 0);
}

TEST(GuardProfileTest, LeavesOutWhatItCannotTellApart) {
  // One capture recorded twice, under two names.
  const std::vector<int32_t> tokens = SyntheticTarget::Tokens(1, 200);
  const std::string low = SyntheticTarget::States(1, tokens, Capture::Boundary(2));
  const std::string high = SyntheticTarget::States(1, tokens, Capture::Boundary(9));
  const auto rows = [&](const std::string& bytes) {
    return *HiddenRows::Create(DType::kF32, 200, SyntheticTarget::kHidden, bytes);
  };
  const absl::StatusOr<GuardProfile> profile =
      BuildGuardProfile(*Wiring::Create({Capture::Boundary(2)}, 12),
                        {Capture::Boundary(2), Capture::Boundary(3), Capture::Boundary(9)},
                        {RecordedRows{rows(low), rows(low), rows(high)}});
  ASSERT_THAT(profile, IsOk());
  const GuardPlace& place = profile->places.front();
  EXPECT_FALSE(place.alternatives[0].told_apart);
  EXPECT_TRUE(place.alternatives[1].told_apart);
}

TEST(GuardProfileBuilderTest, RefusesARecordingWithoutADeclaredCapture) {
  const absl::StatusOr<GuardProfile> profile = BuildGuardProfile(
      SyntheticTarget::Declared(), {Capture::Boundary(2), Capture::Boundary(6)}, {});
  EXPECT_THAT(profile, IsRefusedFor("the recording holds no boundary 10"));
}

TEST(GuardProfileBuilderTest, RefusesTooFewRows) {
  const std::vector<int32_t> tokens = SyntheticTarget::Tokens(1, 50);
  const std::string bytes = SyntheticTarget::States(1, tokens, Capture::Boundary(2));
  const HiddenRows rows = *HiddenRows::Create(DType::kF32, 50, SyntheticTarget::kHidden, bytes);
  EXPECT_THAT(BuildGuardProfile(*Wiring::Create({Capture::Boundary(2)}, 12), {Capture::Boundary(2)},
                                {RecordedRows{rows}}),
              IsRefusedFor("46 rows"));
}

TEST(GuardProfileBuilderTest, RefusesSequencesOfAnotherShape) {
  const std::string bytes(200 * 8 * 4, '\0');
  const HiddenRows rows = *HiddenRows::Create(DType::kF32, 200, 8, bytes);
  EXPECT_THAT(BuildGuardProfile(*Wiring::Create({Capture::Boundary(2)}, 12),
                                {Capture::Boundary(2), Capture::Boundary(3)},
                                {RecordedRows{rows, rows.Slice(0, 199)}}),
              IsRefusedFor("all captures"));
}

TEST(GuardProfileBuilderTest, RefusesRowsThatDoNotVary) {
  const std::string bytes(200 * 8 * 4, '\0');
  const HiddenRows rows = *HiddenRows::Create(DType::kF32, 200, 8, bytes);
  EXPECT_THAT(BuildGuardProfile(*Wiring::Create({Capture::Boundary(2)}, 12), {Capture::Boundary(2)},
                                {RecordedRows{rows}}),
              IsRefusedFor("not positive definite"));
}

TEST(GuardProfileJsonTest, ComesBackAsItWasButForRounding) {
  GuardProfile profile = Profile();
  profile.expectation = DraftingExpectation{0.38, -2.5, {0.38, 0.14}};
  const absl::StatusOr<GuardProfile> read = GuardProfileFromJson(GuardProfileToJson(profile));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->hidden_size, profile.hidden_size);
  EXPECT_EQ(read->channels, profile.channels);
  EXPECT_EQ(read->rows, profile.rows);
  EXPECT_EQ(read->sequences, profile.sequences);
  ASSERT_TRUE(read->expectation.has_value());
  EXPECT_NEAR(read->expectation->AcceptLength(), 1.52, 1e-9);
  ASSERT_EQ(read->places.size(), 3);
  const auto close = ::testing::FloatNear(1e-3f);
  for (size_t i = 0; i < 3; ++i) {
    const GuardPlace &a = read->places[i], &b = profile.places[i];
    EXPECT_EQ(a.capture, b.capture);
    EXPECT_NEAR(a.rms, b.rms, 1e-4 * b.rms);
    ASSERT_EQ(a.alternatives.size(), b.alternatives.size());
    EXPECT_THAT(a.landmarks, Pointwise(::testing::FloatNear(1e-3f), b.landmarks));
    EXPECT_THAT(a.landmark_sizes, Pointwise(::testing::FloatNear(1e-3f), b.landmark_sizes));
    for (size_t c = 0; c < b.center.size(); ++c) {
      EXPECT_NEAR(a.center[c], b.center[c], 1e-4f * std::abs(b.center[c]) + 1e-7f);
      EXPECT_NEAR(a.scale[c], b.scale[c], 1e-4f * b.scale[c]);
      EXPECT_NEAR(a.size[c], b.size[c], 1e-4f * b.size[c]);
    }
    for (size_t k = 0; k < b.alternatives.size(); ++k) {
      EXPECT_EQ(a.alternatives[k].capture, b.alternatives[k].capture);
      EXPECT_EQ(a.alternatives[k].told_apart, b.alternatives[k].told_apart);
      EXPECT_THAT(a.alternatives[k].offset, ::testing::FloatNear(b.alternatives[k].offset, 1e-5f));
      EXPECT_THAT(a.alternatives[k].weights, Pointwise(close, b.alternatives[k].weights));
    }
  }
}

struct FaultCase {
  std::string name;
  std::string path;   // JSON pointer
  std::string value;  // JSON; empty: taken out
  std::string message;
};

class GuardProfileFaultTest : public ::testing::TestWithParam<FaultCase> {};

TEST_P(GuardProfileFaultTest, IsRefusedByName) {
  nlohmann::json json = nlohmann::json::parse(GuardProfileToJson(Profile()));
  const nlohmann::json::json_pointer at(GetParam().path);
  ASSERT_TRUE(json.contains(at)) << GetParam().path;
  if (GetParam().value.empty()) {
    json[at.parent_pointer()].erase(at.back());
  } else {
    json[at] = nlohmann::json::parse(GetParam().value);
  }
  EXPECT_THAT(GuardProfileFromJson(json.dump()), IsRefusedFor(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, GuardProfileFaultTest,
    ::testing::ValuesIn(std::vector<FaultCase>{
        {"AnotherVersion", "/version", "2", "another version"},
        {"NoPlaces", "/places", "[]", "no captures"},
        {"PlacesThatAreNoList", "/places", "{}", "\"places\" is no list"},
        {"NoHiddenSize", "/hidden_size", "", "\"hidden_size\" is missing"},
        {"NegativeHiddenSize", "/hidden_size", "-4", "\"hidden_size\" is no count"},
        {"ChannelOutOfRange", "/channels/47", "48", "ascending below 48"},
        {"ChannelTwice", "/channels/1", "0", "ascending below 48"},
        {"ChannelThatIsNoNumber", "/channels/1", "\"1\"", "\"channels\" holds"},
        {"CenterTooShort", "/places/0/center", "[1]", "lacks numbers for a channel"},
        {"HugeCenter", "/places/0/center/3", "1e300", "not finite"},
        {"NoSpread", "/places/1/scale/2", "0", "spread or size of 0"},
        {"NoLandmarks", "/places/0/landmarks", "[]", "lacks landmarks"},
        {"NoRms", "/places/2/rms", "", "\"rms\" is missing"},
        {"RmsOfNothing", "/places/2/rms", "0", "rows of no size"},
        {"SizeOfNothing", "/places/0/landmark_sizes/1", "0", "a landmark of no size"},
        {"UnknownKind", "/places/0/capture/kind", "\"layer\"", "neither boundary nor"},
        {"OwnAlternative", "/places/0/alternatives/0/capture/boundary", "2", "own alternative"},
        {"WeightsThatAreNoBase64", "/places/0/alternatives/0/weights", "\"%%%\"", "no base64"},
        {"WeightsOfOddLength", "/places/0/alternatives/0/weights", "\"AAAA\"", "no base64"},
        {"TooFewWeights", "/places/0/alternatives/0/weights", "\"AAA=\"", "lacks a weight"},
        {"TornFlag", "/places/0/alternatives/0/told_apart", "1", "neither true nor false"},
    }),
    [](const auto& test) { return test.param.name; });

TEST(GuardProfileJsonTest, RefusesWhatIsNoJson) {
  EXPECT_THAT(GuardProfileFromJson("{"), IsRefusedFor("cannot be read"));
  EXPECT_THAT(GuardProfileFromJson("[]"), IsRefusedFor("cannot be read"));
}

TEST(GuardProfileJsonTest, RefusesAnExpectationThatIsNoShare) {
  GuardProfile profile = Profile();
  profile.expectation = DraftingExpectation{0.38, -2.5, {1.5}};
  EXPECT_THAT(GuardProfileFromJson(GuardProfileToJson(profile)), IsRefusedFor("outside 0..1"));
}

TEST(GuardProfileTest, TellsTheRootMeanSquareOfWholeRows) {
  const std::vector<int32_t> tokens = SyntheticTarget::Tokens(1, 200);
  const std::string bytes = SyntheticTarget::States(1, tokens, Capture::Boundary(9));
  const HiddenRows rows = *HiddenRows::Create(DType::kF32, 200, SyntheticTarget::kHidden, bytes);
  const absl::StatusOr<GuardProfile> profile = BuildGuardProfile(
      *Wiring::Create({Capture::Boundary(9)}, 12), {Capture::Boundary(9)}, {RecordedRows{rows}});
  ASSERT_THAT(profile, IsOk());
  std::vector<float> values(200 * SyntheticTarget::kHidden);
  rows.CopyToFloat(absl::MakeSpan(values));
  double square = 0.0;
  const size_t first = kFirstComparedPosition * SyntheticTarget::kHidden;
  for (size_t i = first; i < values.size(); ++i) square += double{values[i]} * values[i];
  EXPECT_NEAR(profile->places[0].rms, std::sqrt(square / double(values.size() - first)), 1e-5);
}

TEST(GuardProfileOfTest, IsThatOfTheHeadsWiring) {
  const std::string text = GuardProfileToJson(Profile());
  EXPECT_THAT(GuardProfileOf(text, SyntheticTarget::Declared(), SyntheticTarget::kHidden), IsOk());
}

TEST(GuardProfileOfTest, IsRefusedForAnotherWiringOrWidth) {
  const std::string text = GuardProfileToJson(Profile());
  const Wiring swapped =
      *Wiring::Create({Capture::Boundary(2), Capture::Boundary(10), Capture::Boundary(6)}, 12);
  EXPECT_THAT(GuardProfileOf(text, swapped, SyntheticTarget::kHidden),
              IsRefusedFor("is of boundary 2, boundary 6, boundary 10"));
  EXPECT_THAT(GuardProfileOf(text, SyntheticTarget::Declared(), 64),
              IsRefusedFor("with 48 values"));
}

TEST(GuardProfileOfTest, NamesTheFileOfAProfileThatCannotBeRead) {
  EXPECT_THAT(GuardProfileOf("{}", SyntheticTarget::Declared(), SyntheticTarget::kHidden),
              IsRefusedFor("wiring.json beside the head"));
}

}  // namespace
}  // namespace aerie
