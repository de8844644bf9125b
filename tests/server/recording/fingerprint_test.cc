// Fingerprints: what they hold, how rows are compared with them, their JSON.
#include "server/recording/fingerprint.h"

#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/recording/fingerprint_json.h"
#include "tests/server/checkpoint/three_parts.h"
#include "tests/server/checkpoint/tiny_head.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::Lt;

TEST(FingerprintTest, QuantilesAreByChannelAndBetweenNeighboursLikeNumPys) {
  // Channel 0 holds 0..10, channel 1 ten times that, channel 2 is left out.
  std::vector<float> rows;
  for (const int value : {3, 1, 2, 0, 4, 10, 9, 8, 7, 5, 6}) {
    const auto v = static_cast<float>(value);
    rows.insert(rows.end(), {v, 10 * v, -1});
  }
  const Fingerprint made = MakeFingerprint(rows, 3, {0, 1});
  EXPECT_EQ(made.rows, 11);
  EXPECT_EQ(made.width, 3);
  EXPECT_THAT(made.quantiles,
              ElementsAre(FloatEq(1), FloatEq(10), FloatEq(2.5f), FloatEq(25), FloatEq(5),
                          FloatEq(50), FloatEq(7.5f), FloatEq(75), FloatEq(9), FloatEq(90)));
}

TEST(FingerprintTest, RowRmsIsOverAllChannels) {
  const std::vector<float> rows = {3, 4, 0, 0};  // one row of RMS 2.5
  EXPECT_THAT(MakeFingerprint(rows, 4, {2}).row_rms, ElementsAre(2.5f, 2.5f, 2.5f, 2.5f, 2.5f));
}

TEST(FingerprintTest, ChannelsAreSpreadOverTheWidthAndNeverTwice) {
  EXPECT_THAT(SpreadChannels(10, 4), ElementsAre(0, 2, 5, 7));
  EXPECT_THAT(SpreadChannels(3, 8), ElementsAre(0, 1, 2));
}

std::vector<float> Rows(int64_t rows, uint32_t seed, float shift) {
  std::vector<float> values = Noise(rows * 16, seed);
  for (float& value : values) value += shift;
  return values;
}

double DistanceOf(const Fingerprint& print, const std::vector<float>& rows) {
  FingerprintCounter counter(print);
  for (size_t row = 0; row < rows.size() / 16; ++row) {
    counter.Add(absl::MakeConstSpan(rows).subspan(row * 16, 16));
  }
  return counter.Distance();
}

TEST(FingerprintTest, RowsOfOneKindAreNearAndOthersFar) {
  const Fingerprint print = MakeFingerprint(Rows(400, 1, 0), 16, SpreadChannels(16, 16));
  EXPECT_THAT(DistanceOf(print, Rows(400, 1, 0)), Lt(0.005));
  EXPECT_THAT(DistanceOf(print, Rows(400, 2, 0)), Lt(0.04));
  const double shifted = DistanceOf(print, Rows(400, 2, 0.3f));
  EXPECT_GT(shifted, 0.1);
  EXPECT_GT(DistanceOf(print, Rows(400, 2, 5)), shifted);
  EXPECT_NEAR(DistanceOf(print, Rows(400, 2, 5)), 0.5, 1e-6);
}

TEST(FingerprintTest, ValuesAtAQuantileCountHalf) {
  // All values alike: half of them lie below each quantile, the least wrong one can say.
  const std::vector<float> rows(16 * 8, 1.0f);
  const Fingerprint print = MakeFingerprint(rows, 16, {0});
  EXPECT_NEAR(DistanceOf(print, rows), (0.4 + 0.25 + 0 + 0.25 + 0.4) / 5, 1e-6);
}

TEST(FingerprintTest, AClearedCounterStartsAgain) {
  const std::vector<float> rows = Rows(100, 1, 0);
  const Fingerprint print = MakeFingerprint(rows, 16, SpreadChannels(16, 16));
  FingerprintCounter counter(print);
  const std::vector<float> far(16, 9.0f);
  counter.Add(far);
  counter.Clear();
  EXPECT_EQ(counter.rows(), 0);
  for (size_t row = 0; row < 100; ++row) {
    counter.Add(absl::MakeConstSpan(rows).subspan(row * 16, 16));
  }
  EXPECT_THAT(counter.Distance(), Lt(0.01));
}

TEST(FingerprintJsonTest, ReadingGivesTheSameFingerprintBack) {
  const Fingerprint made = MakeFingerprint(Rows(33, 4, 1e-3f), 16, {0, 3, 15});
  const auto read = FingerprintFromJson(FingerprintToJson(made));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(*read, made);
}

struct JsonCase {
  const char* name;
  const char* from;
  const char* to;
  const char* seen;
};

class FingerprintJsonRefusalTest : public testing::TestWithParam<JsonCase> {};

TEST_P(FingerprintJsonRefusalTest, SaysWhatWhyAndHow) {
  const std::string sound = FingerprintToJson(MakeFingerprint(Rows(33, 4, 0), 16, {0, 3}));
  const std::string spoilt = absl::StrReplaceAll(sound, {{GetParam().from, GetParam().to}});
  ASSERT_NE(spoilt, sound);
  const auto read = FingerprintFromJson(spoilt);
  EXPECT_THAT(read, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(std::string(read.status().message()), SaysWhatWhyAndHow(GetParam().seen));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, FingerprintJsonRefusalTest,
    testing::ValuesIn(std::vector<JsonCase>{
        {"NoJson", "{", "", "cannot be read"},
        {"NoWidth", R"("width":16)", R"("width":0)", "no usable width"},
        {"HugeWidth", R"("width":16)", R"("width":4000000000)", "no usable width"},
        {"NoRows", R"("rows":33)", R"("rows":-1)", "no usable width and rows"},
        {"OtherLevels", R"("levels":[)", R"("levels":[0.5,)", "other levels"},
        {"NoChannels", R"("channels":[0,3])", R"("channels":[])", "no channels"},
        {"ChannelTwice", R"("channels":[0,3])", R"("channels":[3,3])", "out of order"},
        {"ChannelPastTheWidth", R"("channels":[0,3])", R"("channels":[0,16])", "out of order"},
        {"MissingQuantile", R"("channels":[0,3])", R"("channels":[0])", "other quantiles"},
        {"NoNumber", R"("row_rms":[)", R"("row_rms":["a",)", "other quantiles"}}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace aerie
