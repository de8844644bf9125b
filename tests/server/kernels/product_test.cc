#include "server/kernels/product.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/kernels/product_case.h"

namespace aerie {
namespace {

constexpr float kUntouched = -777.0f;

// `channels` x `inputs` weights and `rows` rows, multiplied.
struct Trial {
  Trial(const ProductCase& test, int64_t channel_count, int64_t input_count, int64_t row_count)
      : kind(test),
        level(test.level),
        channels(channel_count),
        inputs(input_count),
        rows(row_count),
        weights(SomeNumbers(channels * inputs, 1)),
        x(SomeNumbers(rows * (inputs + 3), 2)),
        matrix(test.element, channels, inputs) {
    matrix.SetRows(0, channels, weights.data());
    out.assign(rows * stride(), kUntouched);
  }

  int64_t stride() const { return channels + 5; }

  void Multiply(Finish finish = Finish::kStore, const float* bias = nullptr) {
    ProductInput input;
    input.Set(x.data(), rows, inputs + 3, inputs, matrix.element(), level);
    MultiplyPanels({.matrix = &matrix,
                    .input = &input,
                    .bias = bias,
                    .finish = finish,
                    .out = out.data(),
                    .out_stride = stride()},
                   0, matrix.panels(), level);
  }

  Expectation At(int64_t row, int64_t channel) const {
    return Expect(weights.data() + channel * inputs, x.data() + row * (inputs + 3), inputs, kind);
  }

  ProductCase kind;
  CpuLevel level;
  int64_t channels, inputs, rows;
  std::vector<float> weights, x, out;
  PackedMatrix matrix;
};

class ProductTest : public testing::TestWithParam<ProductCase> {};

TEST_P(ProductTest, EqualsTheSumsInFloat64ForAnyNumberOfRowsChannelsAndInputs) {
  for (const int64_t inputs : {1, 2, 7, 256, 257, 515}) {
    for (const int64_t channels : {1, 32, 33, 161}) {
      for (const int64_t rows : {1, 2, 5}) {
        Trial trial(GetParam(), channels, inputs, rows);
        trial.Multiply();
        for (int64_t row = 0; row < rows; ++row) {
          for (int64_t channel = 0; channel < trial.stride(); ++channel) {
            const float actual = trial.out[row * trial.stride() + channel];
            if (channel >= channels) {
              ASSERT_EQ(actual, kUntouched) << "behind the last channel";
              continue;
            }
            const Expectation expected = trial.At(row, channel);
            ASSERT_TRUE(std::abs(actual - expected.value) <= expected.tolerance)
                << actual << " for " << expected.value << " at row " << row << ", channel "
                << channel << " of " << channels << ", inputs " << inputs;
          }
        }
      }
    }
  }
}

// Every tile, and more rows than share one visit of the weights.
TEST_P(ProductTest, ARowGivesTheSameBitsWhateverRowsComeWithIt) {
  Trial all(GetParam(), 130, 515, 131);
  all.Multiply();
  for (const int64_t rows : {1, 2, 3, 4, 5, 7, 8, 12, 13, 23, 32, 97}) {
    Trial some(GetParam(), 130, 515, 131);
    some.rows = rows;
    some.Multiply();
    for (int64_t i = 0; i < rows * some.stride(); ++i)
      ASSERT_EQ(some.out[i], all.out[i]) << "of " << rows << " rows";
  }
}

// Integer sums are exact, however many instructions they take.
TEST_P(ProductTest, VnniChangesNoBit) {
  if (GetParam().level != CpuLevel::kAvx512Vnni) return;
  ProductCase without = GetParam();
  without.level = CpuLevel::kAvx512;
  Trial vnni(GetParam(), 130, 515, 23), plain(without, 130, 515, 23);
  vnni.Multiply();
  plain.Multiply();
  EXPECT_EQ(vnni.out, plain.out);
}

TEST_P(ProductTest, Bf16ChangesNoBitWhereItRoundsNoInputs) {
  if (GetParam().level != CpuLevel::kAvx512Bf16 || GetParam().RoundsInputs()) return;
  ProductCase without = GetParam();
  without.level = CpuLevel::kAvx512;
  Trial with(GetParam(), 130, 515, 23), plain(without, 130, 515, 23);
  with.Multiply();
  plain.Multiply();
  EXPECT_EQ(with.out, plain.out);
}

// What the processor makes of rounded inputs is what plain loops make of them.
TEST_P(ProductTest, EveryLevelTakesInputsThatWereRoundedForAnother) {
  if (!GetParam().RoundsInputs()) return;
  for (const NamedLevel& other : Levels()) {
    Trial trial(GetParam(), 45, 515, 13);
    trial.Multiply();
    ProductInput input;
    input.Set(trial.x.data(), 13, 518, 515, WeightElement::kBFloat16, CpuLevel::kAvx512Bf16);
    ASSERT_TRUE(input.is_rounded());
    std::vector<float> out(13 * 45);
    MultiplyPanels({.matrix = &trial.matrix, .input = &input, .out = out.data(), .out_stride = 45},
                   0, trial.matrix.panels(), other.level);
    for (int64_t i = 0; i < 13 * 45; ++i) {
      const int64_t row = i / 45, channel = i % 45;
      const double tolerance = 2 * trial.At(row, channel).tolerance;
      ASSERT_TRUE(std::abs(out[i] - trial.out[row * trial.stride() + channel]) <= tolerance)
          << other.name << ": " << out[i] << " at row " << row << ", channel " << channel;
    }
  }
}

TEST_P(ProductTest, PanelsMayBeSharedOutInAnyWay) {
  Trial whole(GetParam(), 300, 260, 2), shared(GetParam(), 300, 260, 2);
  whole.Multiply();
  ProductInput input;
  input.Set(shared.x.data(), 2, 263, 260, shared.matrix.element(), shared.level);
  const Product product = {.matrix = &shared.matrix,
                           .input = &input,
                           .out = shared.out.data(),
                           .out_stride = shared.stride()};
  for (const auto& [first, end] : {std::pair{7, 10}, {3, 4}, {0, 3}, {4, 7}})
    MultiplyPanels(product, first, end, shared.level);
  EXPECT_EQ(shared.out, whole.out);
}

TEST_P(ProductTest, BiasesAndWhatIsThereAreAdded) {
  Trial plain(GetParam(), 45, 70, 3), added(GetParam(), 45, 70, 3);
  const std::vector<float> bias = SomeNumbers(45, 9);
  plain.Multiply();
  added.Multiply(Finish::kAdd, bias.data());
  for (int64_t row = 0; row < 3; ++row) {
    for (int64_t channel = 0; channel < 45; ++channel) {
      const int64_t at = row * plain.stride() + channel;
      EXPECT_NEAR(added.out[at], plain.out[at] + bias[channel] + kUntouched, 2e-4f);
    }
  }
}

TEST_P(ProductTest, PairsAreGatedByTheSiluOfTheFirst) {
  for (const int64_t pairs : {3, 16, 37, 96}) {
    constexpr int64_t kInputs = 80, kRows = 2;
    std::vector<float> gate = SomeNumbers(pairs * kInputs, 4), up = SomeNumbers(pairs * kInputs, 5);
    // Of either side far from 0 as well, where one of the exponentials would overflow.
    for (int64_t i = 0; i < kInputs; ++i) gate[i] = 20.0f * (i % 2 == 0 ? 1.0f : -1.0f);
    for (int64_t i = 0; i < kInputs; ++i) gate[kInputs + i] = -gate[i];
    const std::vector<float> x = [] {
      std::vector<float> values = SomeNumbers(kRows * kInputs, 6);
      for (int64_t i = 0; i < kInputs; ++i) values[i] = i % 2 == 0 ? 1.0f : -1.0f;
      return values;
    }();
    PackedMatrix matrix(GetParam().element, pairs, kInputs, /*pairs=*/true);
    matrix.SetRows(0, pairs, gate.data(), ChannelOrder::kFirstOfPair);
    matrix.SetRows(0, pairs, up.data(), ChannelOrder::kSecondOfPair);
    ProductInput input;
    input.Set(x.data(), kRows, kInputs, kInputs, GetParam().element, GetParam().level);
    std::vector<float> out(kRows * pairs);
    MultiplyPanels({.matrix = &matrix,
                    .input = &input,
                    .finish = Finish::kSwiGlu,
                    .out = out.data(),
                    .out_stride = pairs},
                   0, matrix.panels(), GetParam().level);
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t i = 0; i < pairs; ++i) {
        const Expectation first =
            Expect(gate.data() + i * kInputs, x.data() + row * kInputs, kInputs, GetParam());
        const Expectation second =
            Expect(up.data() + i * kInputs, x.data() + row * kInputs, kInputs, GetParam());
        const double expected = first.value / (1.0 + std::exp(-first.value)) * second.value;
        const double tolerance = 1.2 * first.tolerance * std::abs(second.value) +
                                 std::abs(first.value) * second.tolerance +
                                 1e-6 * std::abs(expected) + 1e-12;
        const float actual = out[row * pairs + i];
        ASSERT_TRUE(std::abs(actual - expected) <= tolerance)
            << actual << " for " << expected << " at row " << row << ", channel " << i;
      }
    }
  }
}

TEST_P(ProductTest, ARowThatIsNoNumberSpoilsItselfAlone) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity}) {
    for (const int64_t place : {0, 255, 256, 299}) {
      Trial sound(GetParam(), 40, 300, 3), spoilt(GetParam(), 40, 300, 3);
      spoilt.x[303 + place] = bad;
      sound.Multiply();
      spoilt.Multiply();
      for (int64_t channel = 0; channel < 40; ++channel) {
        EXPECT_FALSE(std::isfinite(spoilt.out[spoilt.stride() + channel])) << bad << " " << place;
        for (const int64_t row : {0, 2}) {
          const int64_t at = row * sound.stride() + channel;
          EXPECT_EQ(spoilt.out[at], sound.out[at]);
        }
      }
    }
  }
}

TEST_P(ProductTest, RowsAndChannelsOfZerosAndOfTinyNumbersGiveNumbers) {
  for (const float size : {0.0f, 1e-38f, 1e-44f}) {
    Trial trial(GetParam(), 33, 50, 2);
    for (int64_t i = 0; i < 50; ++i) trial.x[i] = i % 2 == 0 ? size : -size;
    for (int64_t i = 0; i < 50; ++i) trial.weights[50 + i] = size;
    trial.matrix.SetRows(0, 33, trial.weights.data());
    trial.Multiply();
    for (int64_t channel = 0; channel < 33; ++channel) {
      EXPECT_NEAR(trial.out[channel], 0.0f, 1e-35f) << size;
      EXPECT_TRUE(std::isfinite(trial.out[trial.stride() + channel])) << size;
    }
    EXPECT_NEAR(trial.out[trial.stride() + 1], 0.0f, 1e-35f) << size;
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, ProductTest, testing::ValuesIn(ProductCases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace aerie
