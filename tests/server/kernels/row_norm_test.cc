#include "server/kernels/row_norm.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/kernels/levels.h"
#include "tests/server/kernels/product_case.h"

namespace aerie {
namespace {

class RowNormTest : public testing::TestWithParam<NamedLevel> {};

TEST_P(RowNormTest, EqualsTheNormInFloat64) {
  for (const int64_t width : {1, 5, 16, 64, 67, 576}) {
    constexpr int64_t kRows = 3;
    const std::vector<float> in = SomeNumbers(kRows * (width + 2), 7);
    const std::vector<float> weight = SomeNumbers(width, 8);
    std::vector<float> out(kRows * (width + 4), -5.0f);
    NormRows({.in = in.data(),
              .in_stride = width + 2,
              .weight = weight.data(),
              .epsilon = 1e-2f,
              .rows = kRows,
              .width = width,
              .out = out.data(),
              .out_stride = width + 4},
             GetParam().level);
    for (int64_t row = 0; row < kRows; ++row) {
      const float* const values = in.data() + row * (width + 2);
      double squares = 0.0;
      for (int64_t i = 0; i < width; ++i) squares += double{values[i]} * values[i];
      const double scale = 1.0 / std::sqrt(squares / static_cast<double>(width) + 1e-2);
      for (int64_t i = 0; i < width; ++i) {
        const double expected = values[i] * scale * weight[i];
        const float actual = out[row * (width + 4) + i];
        ASSERT_TRUE(std::abs(actual - expected) <= 1e-6 * std::abs(expected) + 1e-12) << width;
      }
      EXPECT_EQ(out[row * (width + 4) + width], -5.0f) << "behind the row";
    }
  }
}

TEST_P(RowNormTest, MayWriteOverItsInput) {
  std::vector<float> rows = SomeNumbers(70, 3);
  const std::vector<float> weight(35, 2.0f);
  std::vector<float> apart(70);
  RowNormArgs args = {.in = rows.data(),
                      .in_stride = 35,
                      .weight = weight.data(),
                      .epsilon = 1e-5f,
                      .rows = 2,
                      .width = 35,
                      .out = apart.data(),
                      .out_stride = 35};
  NormRows(args, GetParam().level);
  args.out = rows.data();
  NormRows(args, GetParam().level);
  EXPECT_EQ(rows, apart);
}

INSTANTIATE_TEST_SUITE_P(Levels, RowNormTest, testing::ValuesIn(Levels()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace aerie
