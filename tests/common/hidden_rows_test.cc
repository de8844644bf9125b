#include "common/hidden_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

std::string Bytes(const std::vector<float>& values) {
  std::string bytes(values.size() * 4, '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::string Bytes16(const std::vector<uint16_t>& values) {
  std::string bytes(values.size() * 2, '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST(HiddenRowsTest, RefusesAnyOtherByteCountAndSaysTheSizes) {
  const std::string bytes(23, '\0');
  const auto rows = HiddenRows::Create(DType::kBF16, 2, 6, bytes);
  ASSERT_EQ(rows.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DetailOf(rows.status()).reason, kReasonByteCount);
  EXPECT_THAT(std::string(rows.status().message()),
              HasSubstr("23 bytes; expected 24 = 2 rows x 6"));
}

TEST(HiddenRowsTest, RefusesARowCountWhoseByteCountOverflows) {
  const int64_t rows = std::numeric_limits<int64_t>::max() / 2;
  EXPECT_FALSE(HiddenRows::Create(DType::kF32, rows, 8, "").ok());
}

TEST(HiddenRowsTest, ReadsLittleEndianRowsOfEveryDtypeAtAnyAddress) {
  // One byte in front, so that no element is aligned.
  const std::string f32 = "x" + Bytes({1.0f, -2.5f});
  const std::string f16 = "x" + Bytes16({0x3c00, 0xc100});
  const std::string bf16 = "x" + Bytes16({0x3f80, 0xc020});
  const std::pair<DType, std::string> cases[] = {
      {DType::kF32, f32}, {DType::kF16, f16}, {DType::kBF16, bf16}};
  for (const auto& [dtype, bytes] : cases) {
    const auto rows = HiddenRows::Create(dtype, 1, 2, std::string_view(bytes).substr(1));
    ASSERT_TRUE(rows.ok()) << rows.status();
    std::vector<float> out(2);
    rows->CopyToFloat(absl::MakeSpan(out));
    EXPECT_THAT(out, ElementsAre(1.0f, -2.5f)) << DTypeName(dtype);
  }
}

TEST(HiddenRowsTest, SlicesWholeRows) {
  const std::string bytes = Bytes({0, 1, 10, 11, 20, 21});
  const HiddenRows slice = HiddenRows::Create(DType::kF32, 3, 2, bytes)->Slice(1, 2);
  std::vector<float> out(4);
  slice.CopyToFloat(absl::MakeSpan(out));
  EXPECT_THAT(out, ElementsAre(10, 11, 20, 21));
}

TEST(HiddenRowsTest, NamesTheFirstNonFiniteElement) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::string f32 = Bytes({0, 1, 2, 3, -kInf, kNan});
  const auto in_f32 = HiddenRows::Create(DType::kF32, 2, 3, f32)->FindNonFinite();
  ASSERT_TRUE(in_f32.has_value());
  EXPECT_EQ(in_f32->row, 1);
  EXPECT_EQ(in_f32->column, 1);

  const std::string bf16 = Bytes16({0x3f80, 0x7fc0});
  EXPECT_EQ(HiddenRows::Create(DType::kBF16, 1, 2, bf16)->FindNonFinite()->column, 1);
  // 0x7f80 is infinity in bfloat16 but a NaN in float16; 0x7bff is the largest finite float16.
  const std::string f16 = Bytes16({0x7bff, 0x7c00});
  EXPECT_EQ(HiddenRows::Create(DType::kF16, 1, 2, f16)->FindNonFinite()->column, 1);
}

TEST(HiddenRowsTest, FindsNothingInFiniteRows) {
  const std::string bytes = Bytes({0, -0.0f, std::numeric_limits<float>::max(), 1e-45f});
  EXPECT_FALSE(HiddenRows::Create(DType::kF32, 1, 4, bytes)->FindNonFinite().has_value());
}

}  // namespace
}  // namespace aerie
