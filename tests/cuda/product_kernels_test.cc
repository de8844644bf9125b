// Products and norms of server/kernels/cuda against plain sums in float64.
#include <cmath>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda/product_fixture.h"

namespace aerie {
namespace {

TEST_P(ProductKernelTest, ARowTimesAMatrixIsWhatPlainLoopsSay) {
  for (const DeviceElement element : kElements) {
    for (const auto& [channels, inputs] :
         {std::pair{1, 1}, {5, 12}, {16, 64}, {33, 576}, {7, 601}}) {
      const Weights weights(channels, element, channels, inputs);
      const DeviceMatrix matrix = Upload(weights);
      for (const int32_t rows : {1, 2, 3, 7, 8, 19}) {
        const std::vector<float> in = Numbers(rows, rows * inputs);
        float* const out = Room<float>(rows * channels);
        device().Run(ProductOp{.matrix = matrix,
                               .channels = channels,
                               .rows = rows,
                               .in = In(in),
                               .in_stride = inputs,
                               .out = out,
                               .out_stride = channels});
        std::vector<double> expected;
        for (int32_t r = 0; r < rows; ++r) {
          for (int64_t c = 0; c < channels; ++c)
            expected.push_back(weights.Sum(c, in.data() + r * inputs));
        }
        ExpectNear(Out(out, rows * channels), expected);
      }
    }
  }
}

// Each number stands out: its channel's bias, its row's residual, and rows by number.
// Each but the two of NaN, those below the smallest normal number included.
TEST_P(ProductKernelTest, EveryCodeOfFp8StandsForItsNumber) {
  std::vector<uint8_t> packed;
  std::vector<float> expected, scales;
  for (int code = 0; code < 256; ++code) {
    if ((code & 0x7f) == 0x7f) continue;
    packed.resize(packed.size() + kStrideElements);
    packed[packed.size() - kStrideElements + static_cast<size_t>(code % 4)] =
        static_cast<uint8_t>(code);
    expected.push_back(Fp8ToFloat(static_cast<uint8_t>(code)) * 0.5f);
    scales.push_back(0.5f);
  }
  const auto channels = static_cast<int64_t>(expected.size());
  float* const out = Room<float>(expected.size());
  device().Run(ProductOp{.matrix = {.weights = In(packed),
                                    .scales = In(scales),
                                    .channels = channels,
                                    .inputs = 4,
                                    .stride = kStrideElements,
                                    .element = DeviceElement::kFp8},
                         .channels = channels,
                         .rows = 1,
                         .in = In(std::vector<float>(4, 1.0f)),
                         .in_stride = 4,
                         .out = out,
                         .out_stride = channels});
  EXPECT_EQ(Out(out, expected.size()), expected);
}

TEST_P(ProductKernelTest, RowsAreTakenByNumberAndResidualAndBiasAreAdded) {
  const Weights weights(3, DeviceElement::kBFloat16, 24, 40);
  const std::vector<float> in = Numbers(5, 6 * 44), bias = Numbers(6, 10),
                           residual = Numbers(7, 4 * 10);
  const std::vector<int32_t> in_rows = {5, 0, 2}, residual_rows = {3, 3, 1};
  float* const out = Room<float>(3 * 10);
  device().Run(ProductOp{.matrix = Upload(weights),
                         .first_channel = 7,
                         .channels = 10,
                         .rows = 3,
                         .in = In(in),
                         .in_stride = 44,
                         .in_rows = In(in_rows),
                         .bias = In(bias),
                         .finish = DeviceFinish::kAdd,
                         .residual = In(residual),
                         .residual_stride = 10,
                         .residual_rows = In(residual_rows),
                         .out = out,
                         .out_stride = 10});
  std::vector<double> expected;
  for (int r = 0; r < 3; ++r) {
    for (int c = 0; c < 10; ++c) {
      expected.push_back(weights.Sum(7 + c, in.data() + in_rows[r] * 44) + bias[c] +
                         residual[residual_rows[r] * 10 + c]);
    }
  }
  ExpectNear(Out(out, 30), expected);
}

TEST_P(ProductKernelTest, PairsOfChannelsAreGated) {
  for (const DeviceElement element : kElements) {
    const Weights weights(9, element, 22, 50);
    const std::vector<float> in = Numbers(4, 9 * 50);
    float* const out = Room<float>(9 * 11);
    device().Run(ProductOp{.matrix = Upload(weights),
                           .channels = 22,
                           .rows = 9,
                           .in = In(in),
                           .in_stride = 50,
                           .finish = DeviceFinish::kSwiGlu,
                           .out = out,
                           .out_stride = 11});
    std::vector<double> expected;
    for (int r = 0; r < 9; ++r) {
      for (int c = 0; c < 11; ++c) {
        const double gate = weights.Sum(2 * c, in.data() + r * 50);
        expected.push_back(gate / (1.0 + std::exp(-gate)) *
                           weights.Sum(2 * c + 1, in.data() + r * 50));
      }
    }
    ExpectNear(Out(out, 99), expected);
  }
}

TEST_P(ProductKernelTest, ARowHasTheSameBitsInAnyBatch) {
  for (const DeviceElement element : kElements) {
    const Weights weights(2, element, 21, 300);
    const DeviceMatrix matrix = Upload(weights);
    const float* const in = In(Numbers(8, 19 * 300));
    float* const out = Room<float>(19 * 21);
    const auto run = [&](int32_t rows) {
      device().Run(ProductOp{.matrix = matrix,
                             .channels = 21,
                             .rows = rows,
                             .in = in,
                             .in_stride = 300,
                             .out = out,
                             .out_stride = 21});
      return Out(out, rows * 21);
    };
    const std::vector<float> all = run(19);
    for (const int32_t rows : {1, 2, 3, 4, 5, 8, 9}) {
      EXPECT_EQ(run(rows), std::vector<float>(all.begin(), all.begin() + rows * 21));
    }
  }
}

TEST_P(ProductKernelTest, ANormDividesByTheRootMeanSquare) {
  for (const int32_t width : {1, 12, 576, 1000}) {
    const std::vector<float> in = Numbers(width, 3 * (width + 5)), weight = Numbers(1, width);
    float* const rows = In(in);
    device().Run(NormOp{.in = rows,
                        .in_stride = width + 5,
                        .weight = In(weight),
                        .epsilon = 1e-3f,
                        .rows = 3,
                        .width = width,
                        .out = rows,
                        .out_stride = width + 5});
    std::vector<double> expected(in.begin(), in.end());
    for (int r = 0; r < 3; ++r) {
      double* const row = expected.data() + r * (width + 5);
      double sum = 0.0;
      for (int i = 0; i < width; ++i) sum += row[i] * row[i];
      for (int i = 0; i < width; ++i) row[i] *= weight[i] / std::sqrt(sum / width + 1e-3f);
    }
    ExpectNear(Out(rows, in.size()), expected);
  }
}

TEST_P(ProductKernelTest, TheFirstLayerIsGivenTheEmbeddingFirst) {
  constexpr int kWidth = 36, kRows = 5, kFused = 2;
  const std::vector<float> embeddings = Numbers(1, kRows * kWidth),
                           fused = Numbers(2, kFused * kWidth),
                           states = Numbers(3, (kRows - kFused) * kWidth),
                           norm_e = Numbers(4, kWidth), norm_h = Numbers(5, kWidth);
  for (const bool normed : {false, true}) {
    float* const x = Room<float>(kRows * 2 * kWidth);
    float* const residual = Room<float>(kRows * kWidth);
    device().Run(PrepareOp{.embeddings = In(embeddings),
                           .fused = In(fused),
                           .states = In(states),
                           .fused_rows = kFused,
                           .embedding_norm = In(norm_e),
                           .hidden_norm = In(norm_h),
                           .epsilon = 1e-5f,
                           .normed_residual = normed,
                           .rows = kRows,
                           .width = kWidth,
                           .x = x,
                           .residual = residual});
    std::vector<double> expected_x, expected_residual;
    const auto append = [](const float* row, const std::vector<float>& norm,
                           std::vector<double>& to) {
      double sum = 0.0;
      for (int i = 0; i < kWidth; ++i) sum += double{row[i]} * row[i];
      for (int i = 0; i < kWidth; ++i)
        to.push_back(row[i] * norm[i] / std::sqrt(sum / kWidth + 1e-5f));
    };
    for (int r = 0; r < kRows; ++r) {
      append(embeddings.data() + r * kWidth, norm_e, expected_x);
      const float* const h =
          r < kFused ? fused.data() + r * kWidth : states.data() + (r - kFused) * kWidth;
      append(h, norm_h, expected_x);
      if (normed) {
        append(h, norm_h, expected_residual);
      } else {
        expected_residual.insert(expected_residual.end(), h, h + kWidth);
      }
    }
    ExpectNear(Out(x, expected_x.size()), expected_x);
    ExpectNear(Out(residual, expected_residual.size()), expected_residual);
  }
}

TEST_P(ProductKernelTest, ARecordingDoesItsWorkWhenItIsReplayedOnNumbersOfThen) {
  const Weights weights(3, DeviceElement::kFloat32, 4, 16);
  const DeviceMatrix matrix = Upload(weights);
  const std::vector<float> first = Numbers(1, 16), second = Numbers(2, 16);
  float* const in = In(first);
  float* const out = In(std::vector<float>(4, -7.0f));
  const int32_t recording = device().Record([&] {
    device().Run(ProductOp{.matrix = matrix,
                           .channels = 4,
                           .rows = 1,
                           .in = in,
                           .in_stride = 16,
                           .out = out,
                           .out_stride = 4});
  });
  EXPECT_THAT(Out(out, 4), testing::Each(-7.0f));
  device().CopyWithin(in, In(second), 16 * sizeof(float));
  for (int time = 0; time < 2; ++time) {
    device().Replay(recording);
    std::vector<double> expected;
    for (int c = 0; c < 4; ++c) expected.push_back(weights.Sum(c, second.data()));
    ExpectNear(Out(out, 4), expected);
  }
  device().ForgetRecordings();
}

INSTANTIATE_TEST_SUITE_P(Backends, ProductKernelTest, testing::ValuesIn(Backends()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace aerie
