// Products of more rows than the kernel of few rows is for, with the library of large products and
// without it.
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda/emulation/order.h"
#include "tests/cuda/product_fixture.h"

namespace aerie {
namespace {

using LargeProductTest = ProductKernelTest;

// Inputs go in with 16 digits.
constexpr double kLargeTolerance = 1e-4;

// What the library was given, where that can be counted; a device's is not counted.
class Counted {
 public:
  explicit Counted(BackendKind kind) : counts_(kind != BackendKind::kDevice) {}
  void Expect(int64_t products) const {
    if (!counts_) return;
    EXPECT_EQ(aerie_emulation::GemmCount() - before_, products);
  }

 private:
  bool counts_;
  int64_t before_ = aerie_emulation::GemmCount();
};

// Rows by number, a part of the channels, bias and residual: in one piece of rows, and in two.
TEST_P(LargeProductTest, ManyRowsGiveWhatPlainLoopsSay) {
  for (const DeviceElement element : kElements) {
    const Weights weights(3, element, 24, 40);
    const DeviceMatrix matrix = Upload(weights);
    for (const int32_t rows : {kFewRows + 1, 515}) {
      const std::vector<float> in = Numbers(5, 9 * 44), bias = Numbers(6, 10),
                               residual = Numbers(7, 7 * 10);
      std::vector<int32_t> in_rows, residual_rows;
      for (int32_t r = 0; r < rows; ++r) {
        in_rows.push_back(r * 5 % 9);
        residual_rows.push_back(r * 3 % 7);
      }
      float* const out = Room<float>(rows * 10);
      const Counted counted(GetParam().kind);
      device().Run(ProductOp{.matrix = matrix,
                             .first_channel = 7,
                             .channels = 10,
                             .rows = rows,
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
      counted.Expect(rows > 512 ? 2 : 1);
      std::vector<double> expected;
      for (int32_t r = 0; r < rows; ++r) {
        for (int c = 0; c < 10; ++c) {
          expected.push_back(weights.Sum(7 + c, in.data() + in_rows[r] * 44) + bias[c] +
                             residual[residual_rows[r] * 10 + c]);
        }
      }
      ExpectNear(Out(out, rows * 10), expected, kLargeTolerance);
    }
  }
}

TEST_P(LargeProductTest, PairsOfChannelsAreGated) {
  constexpr int32_t kRows = 70;
  for (const DeviceElement element : kElements) {
    const Weights weights(9, element, 22, 50);
    const std::vector<float> in = Numbers(4, kRows * 50);
    float* const out = Room<float>(kRows * 11);
    device().Run(ProductOp{.matrix = Upload(weights),
                           .channels = 22,
                           .rows = kRows,
                           .in = In(in),
                           .in_stride = 50,
                           .finish = DeviceFinish::kSwiGlu,
                           .out = out,
                           .out_stride = 11});
    std::vector<double> expected;
    for (int r = 0; r < kRows; ++r) {
      for (int c = 0; c < 11; ++c) {
        const double gate = weights.Sum(2 * c, in.data() + r * 50);
        expected.push_back(gate / (1.0 + std::exp(-gate)) *
                           weights.Sum(2 * c + 1, in.data() + r * 50));
      }
    }
    ExpectNear(Out(out, kRows * 11), expected, kLargeTolerance);
  }
}

// More than one piece of channels, the second of another size, with a residual that is the result.
TEST_P(LargeProductTest, ManyChannelsAreDoneInPieces) {
  constexpr int32_t kRows = 66, kChannels = 8198;
  const Weights weights(2, DeviceElement::kInt8, kChannels, 3);
  const std::vector<float> in = Numbers(4, kRows * 3), residual = Numbers(5, kRows * kChannels);
  float* const out = In(residual);
  const Counted counted(GetParam().kind);
  device().Run(ProductOp{.matrix = Upload(weights),
                         .channels = kChannels,
                         .rows = kRows,
                         .in = In(in),
                         .in_stride = 3,
                         .finish = DeviceFinish::kAdd,
                         .residual = out,
                         .residual_stride = kChannels,
                         .out = out,
                         .out_stride = kChannels});
  counted.Expect(2);
  std::vector<double> expected;
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kChannels; ++c)
      expected.push_back(weights.Sum(c, in.data() + r * 3) + residual[r * kChannels + c]);
  }
  ExpectNear(Out(out, expected.size()), expected, kLargeTolerance);
}

// Bits do not depend on the rows beside: the library is not asked.
TEST_P(LargeProductTest, FewRowsAreNotTheLibrarys) {
  const Weights weights(3, DeviceElement::kBFloat16, 8, 16);
  const std::vector<float> in = Numbers(5, kFewRows * 16);
  const Counted counted(GetParam().kind);
  device().Run(ProductOp{.matrix = Upload(weights),
                         .channels = 8,
                         .rows = kFewRows,
                         .in = In(in),
                         .in_stride = 16,
                         .out = Room<float>(kFewRows * 8),
                         .out_stride = 8});
  counted.Expect(0);
}

TEST_P(LargeProductTest, ARecordingHoldsTheLibrarysProducts) {
  constexpr int32_t kRows = 65;
  const Weights weights(3, DeviceElement::kFp8, 6, 16);
  const DeviceMatrix matrix = Upload(weights);
  device().PrepareProducts(matrix);
  const std::vector<float> numbers = Numbers(2, kRows * 16);
  float* const in = In(std::vector<float>(kRows * 16, 3.0f));
  float* const out = In(std::vector<float>(kRows * 6, -7.0f));
  const int32_t recording = device().Record([&] {
    device().Run(ProductOp{.matrix = matrix,
                           .channels = 6,
                           .rows = kRows,
                           .in = in,
                           .in_stride = 16,
                           .out = out,
                           .out_stride = 6});
  });
  EXPECT_THAT(Out(out, kRows * 6), testing::Each(-7.0f));
  device().CopyWithin(in, In(numbers), kRows * 16 * sizeof(float));
  device().Replay(recording);
  std::vector<double> expected;
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < 6; ++c) expected.push_back(weights.Sum(c, numbers.data() + r * 16));
  }
  ExpectNear(Out(out, kRows * 6), expected, kLargeTolerance);
  device().ForgetRecordings();
}

INSTANTIATE_TEST_SUITE_P(Backends, LargeProductTest, testing::ValuesIn(Backends()),
                         [](const auto& test) { return test.param.name; });

// A device that was opened where there is no library.
class NoLibraryTest : public BackendTest {
 protected:
  void SetUp() override {
    aerie_emulation::SetGemm(false);
    BackendTest::SetUp();
  }
  void TearDown() override {
    aerie_emulation::SetGemm(true);
    BackendTest::TearDown();
  }
};

TEST_P(NoLibraryTest, ManyRowsAreDoneByTheKernelOfFew) {
  EXPECT_EQ(device().traits().gemm, "");
  EXPECT_EQ(device().traits().no_gemm, "there is no library");
  const std::vector<float> numbers = Numbers(1, 100 * 16);
  const DeviceMatrix matrix = {
      .weights = In(std::vector<float>(16, 1.0f)), .channels = 1, .inputs = 16, .stride = 16};
  device().PrepareProducts(matrix);
  float* const out = Room<float>(100);
  device().Run(ProductOp{.matrix = matrix,
                         .channels = 1,
                         .rows = 100,
                         .in = In(numbers),
                         .in_stride = 16,
                         .out = out,
                         .out_stride = 1});
  std::vector<double> expected(100, 0.0);
  for (size_t i = 0; i < numbers.size(); ++i) expected[i / 16] += numbers[i];
  ExpectNear(Out(out, 100), expected);
}

INSTANTIATE_TEST_SUITE_P(Backends, NoLibraryTest,
                         testing::Values(Backend{"Emulated", BackendKind::kForward}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace aerie
