#include "common/float8.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "common/error_detail.h"
#include "common/float16.h"

namespace aerie {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

HiddenRows RowsOf(const std::vector<float>& values, int64_t width) {
  return HiddenRows::Create(
             DType::kF32, static_cast<int64_t>(values.size()) / width, width,
             {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)})
      .value();
}

std::vector<float> FloatsOf(const std::string& bf16) {
  std::vector<float> out(bf16.size() / 2);
  for (size_t i = 0; i < out.size(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, bf16.data() + 2 * i, 2);
    out[i] = Bf16ToFloat(bits);
  }
  return out;
}

// The float32 scale `bits` in front of `codes`.
std::string RowBytes(uint32_t bits, const std::string& codes) {
  std::string row;
  for (int i = 0; i < 4; ++i) row.push_back(static_cast<char>(bits >> (8 * i)));
  return row + codes;
}

TEST(Float8Test, KnownAnswers) {
  EXPECT_EQ(FloatToFp8(1.0f), 0x38);
  EXPECT_EQ(FloatToFp8(-2.0f), 0xc0);
  EXPECT_EQ(FloatToFp8(448.0f), 0x7e);
  EXPECT_EQ(FloatToFp8(1e9f), 0x7e) << "there is no infinity to round to";
  EXPECT_EQ(FloatToFp8(17.0f), 0x58) << "a tie goes to the even code";
  EXPECT_EQ(FloatToFp8(19.0f), 0x5a);
  EXPECT_EQ(FloatToFp8(0x1p-6f), 0x08) << "the smallest normal number";
  EXPECT_EQ(FloatToFp8(7.5f * 0x1p-9f), 0x08);
  EXPECT_EQ(FloatToFp8(0x1p-10f), 0x00);
  EXPECT_EQ(FloatToFp8(-0.0f), 0x80);
  EXPECT_EQ(FloatToFp8(kNaN), 0x7f);
  EXPECT_TRUE(std::isnan(Fp8ToFloat(0x7f)));
  EXPECT_TRUE(std::isnan(Fp8ToFloat(0xff)));
}

TEST(Float8Test, EveryCodeSurvivesTheWayThereAndLiesBetweenItsNeighbours) {
  for (int code = 0; code < 256; ++code) {
    if ((code & 0x7f) == 0x7f) continue;
    const auto own = static_cast<uint8_t>(code);
    ASSERT_EQ(FloatToFp8(Fp8ToFloat(own)), own);
    if ((code & 0x7f) == 0x7e) continue;
    const float value = Fp8ToFloat(own), next = Fp8ToFloat(static_cast<uint8_t>(own + 1));
    ASSERT_GT(std::abs(next), std::abs(value));
    const float middle = (value + next) / 2;
    ASSERT_EQ(FloatToFp8(std::nextafter(middle, value)), own);
    ASSERT_EQ(FloatToFp8(std::nextafter(middle, next)), own + 1);
    ASSERT_EQ(FloatToFp8(middle) % 2, 0) << "ties go to the even code";
  }
}

TEST(Float8Test, ARowIsItsScaleAndThenItsCodes) {
  // 900 takes a scale of 4: 2 would leave it above 448.
  const std::vector<float> values = {900.0f, -4.0f, 0.0f, 448.0f, 1.0f, -0.5f};
  const std::string bytes = EncodeFp8(RowsOf(values, 3));
  EXPECT_EQ(bytes, RowBytes(0x40800000, "\x76\xb8" + std::string(1, '\0')) +
                       RowBytes(0x3f800000, "\x7e\x38\xb0"));
  // 900 / 4 = 225, which lies nearest to 224.
  EXPECT_THAT(FloatsOf(DecodeFp8(bytes, 2, 3).value()),
              ElementsAre(896.0f, -4.0f, 0.0f, 448.0f, 1.0f, -0.5f));
}

TEST(Float8Test, RowsOfAnySizeLoseAtMostHalfAStep) {
  for (int exponent = -120; exponent <= 127; ++exponent) {
    std::vector<float> values;
    for (int i = 1; i <= 64; ++i) {
      values.push_back(
          std::ldexp((i % 2 == 0 ? -1.0f : 1.0f) * static_cast<float>(i) / 65.0f, exponent));
    }
    const std::vector<float> back =
        FloatsOf(DecodeFp8(EncodeFp8(RowsOf(values, 64)), 1, 64).value());
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_TRUE(std::abs(back[i] - values[i]) <= std::abs(values[i]) / 16)
          << back[i] << " for " << values[i];
    }
  }
}

TEST(Float8Test, WhatIsFiniteComesBackFinite) {
  const std::vector<float> back =
      FloatsOf(DecodeFp8(EncodeFp8(RowsOf({3.4e38f, -3.39e38f, 3.0e38f, 0.0f}, 4)), 1, 4).value());
  EXPECT_THAT(back, ElementsAre(0x1.ep127f, -0x1.ep127f, 0x1.cp127f, 0.0f));
}

TEST(Float8Test, ARowThatIsNotFiniteIsRefusedByItsScale) {
  for (const float bad : {kNaN, kInfinity, -kInfinity}) {
    const std::string bytes = EncodeFp8(RowsOf({1.0f, 2.0f, bad, 3.0f, 5.0f, 4.0f}, 2));
    const absl::Status status = DecodeFp8(bytes, 3, 2).status();
    EXPECT_EQ(DetailOf(status).reason, kReasonNonFinite);
    EXPECT_THAT(std::string(status.message()), HasSubstr("row 1 has the scale nan"));
  }
}

TEST(Float8Test, RefusesScalesThatAreNotFiniteAndAboveZero) {
  for (const uint32_t scale : {0x00000000u, 0x80000000u, 0xbf800000u, 0x7f800000u, 0xff800000u,
                               0x7fc00000u, 0xffffffffu}) {
    const absl::Status status = DecodeFp8(RowBytes(scale, "\x38"), 1, 1).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << scale;
    EXPECT_EQ(DetailOf(status).reason, kReasonNonFinite) << scale;
  }
}

TEST(Float8Test, NaNCodesAndProductsThatOverflowAreNotFiniteBehindIt) {
  const std::string nan = DecodeFp8(RowBytes(0x3f800000, "\x38\xff"), 1, 2).value();
  const auto view = HiddenRows::Create(DType::kBF16, 1, 2, nan);
  ASSERT_TRUE(view->FindNonFinite().has_value());
  EXPECT_EQ(view->FindNonFinite()->column, 1);
  const std::string infinite = DecodeFp8(RowBytes(0x7f000000, "\x7e"), 1, 1).value();
  EXPECT_TRUE(HiddenRows::Create(DType::kBF16, 1, 1, infinite)->FindNonFinite().has_value());
}

TEST(Float8Test, ScalesThatAreNoPowersOfTwoAreRoundedToBfloat16) {
  const float scale = 1.0f / 3.0f;
  uint32_t bits;
  std::memcpy(&bits, &scale, 4);
  EXPECT_THAT(FloatsOf(DecodeFp8(RowBytes(bits, "\x38"), 1, 1).value()),
              ElementsAre(Bf16ToFloat(FloatToBf16(scale))));
}

TEST(Float8Test, RefusesAnyByteCountButTheExactOne) {
  const std::string two = EncodeFp8(RowsOf({1.0f, 2.0f, 3.0f, 4.0f}, 2));
  EXPECT_TRUE(DecodeFp8(two, 2, 2).ok());
  for (const auto& [bytes, rows, width] : {std::tuple{two + "x", int64_t{2}, int64_t{2}},
                                           {two.substr(1), 2, 2},
                                           {two, 3, 2},
                                           {two, 2, 1},
                                           {"", 1, 2},
                                           {"", -1, -4},
                                           {"", int64_t{1} << 62, int64_t{1} << 61}}) {
    EXPECT_EQ(DetailOf(DecodeFp8(bytes, rows, width).status()).reason, kReasonByteCount)
        << rows << " x " << width;
  }
}

}  // namespace
}  // namespace aerie
