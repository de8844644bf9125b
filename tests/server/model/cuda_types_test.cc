// Scores of the net of CUDA devices against the packed one's, for every kind of head and in every
// type of weights.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <list>
#include <vector>

#include "common/float16.h"
#include "common/float8.h"
#include "gtest/gtest.h"
#include "server/kernels/cpu_level.h"
#include "tests/server/model/cuda_net_fixture.h"

namespace aerie {
namespace {

// Relative to a row's root mean square, the worst of all rows; infinity for NaN.
double WorstOff(const std::vector<Scores>& actual, const std::vector<Scores>& expected) {
  EXPECT_EQ(actual.size(), expected.size());
  double worst = 0.0;
  for (size_t row = 0; row < actual.size(); ++row) {
    double off = 0.0, size = 0.0;
    for (size_t i = 0; i < actual[row].size(); ++i) {
      off += std::pow(actual[row][i] - expected[row][i], 2);
      size += std::pow(expected[row][i], 2);
    }
    const double relative = std::sqrt(off / size);
    worst = relative >= 0.0 ? std::max(worst, relative) : INFINITY;
  }
  return worst;
}

// Sums of a few dozen products in another order; a wrong equation is off by more than 1e-2.
TEST_P(CudaNetTest, ScoresEqualThoseOfTheCpuForEveryKindOfHead) {
  for (const HeadKind& kind : GroupedKinds()) {
    const TemporaryFolder folder;
    const Checkpoint checkpoint = LoadKind(kind, folder);
    const NoiseRows rows(5, 30);
    const auto expected = ScoresOf(*OnKernels(checkpoint, WeightElement::kFloat32), rows.sequence);
    const auto actual =
        ScoresOf(*OnDevice(checkpoint, DeviceElement::kFloat32).model, rows.sequence);
    EXPECT_TRUE(WorstOff(actual, expected) <= 2e-5) << kind.name;
  }
}

struct TypePair {
  WeightElement cpu;
  DeviceElement device;
  double limit;
};
// bfloat16: the same weights, but some kept keys and values fall to the other side, and a CPU that
// multiplies bfloat16 rounds the inputs as well. int8: any CPU does.
const double kBFloat16Limit = BestCpuLevel() == CpuLevel::kAvx512Bf16 ? 1e-2 : 3e-3;
const TypePair kTypes[] = {{WeightElement::kFloat32, DeviceElement::kFloat32, 2e-5},
                           {WeightElement::kBFloat16, DeviceElement::kBFloat16, kBFloat16Limit},
                           {WeightElement::kInt8, DeviceElement::kInt8, 3e-3}};

TEST_P(CudaNetTest, ScoresOfTheDemoHeadEqualThoseOfTheCpuInEveryType) {
  for (const TypePair& type : kTypes) {
    const auto expected = ScoresOf(*OnKernels(DemoCheckpoint(), type.cpu), Recording()[0]);
    const auto actual = ScoresOf(*OnDevice(DemoCheckpoint(), type.device).model, Recording()[0]);
    const double worst = WorstOff(actual, expected);
    EXPECT_TRUE(worst <= type.limit) << worst << " in type " << static_cast<int>(type.device);
  }
}

// Scores of the last rows of a prompt that is long enough for the library of large products.
std::vector<Scores> ScoresOfAPrompt(DraftModel& model) {
  Tapped tap(model);
  OpenedSlot slot(model);
  const StepSequence part = slot.ExtendRows(Recording()[0], kFewRows + 7, Outputs::kEvery);
  EXPECT_THAT(model.Step({&part, 1}, 1), IsOk());
  return tap.Take();
}

TEST_P(CudaNetTest, ScoresOfAPromptOfManyRowsEqualThoseOfTheCpuInEveryType) {
  for (const TypePair& type : kTypes) {
    const auto expected = ScoresOfAPrompt(*OnKernels(DemoCheckpoint(), type.cpu));
    const auto actual = ScoresOfAPrompt(*OnDevice(DemoCheckpoint(), type.device).model);
    ASSERT_EQ(actual.size(), static_cast<size_t>(kFewRows) + 7);
    const double worst = WorstOff(actual, expected);
    // Inputs go in with 16 digits: float32 is off by a little more.
    EXPECT_TRUE(worst <= type.limit) << worst << " in type " << static_cast<int>(type.device);
  }
}

// A checkpoint whose matrices, but for fc, are those of another, rounded to fp8.
struct RoundedCheckpoint {
  explicit RoundedCheckpoint(const Checkpoint& exact) : checkpoint(exact) {
    for (auto& [key, span] : checkpoint.tensors) {
      if (span.shape.size() != 2 || key.role == HeadTensor::kFc) continue;
      EXPECT_EQ(span.type, TensorType::kBF16);
      const auto inputs = static_cast<size_t>(span.shape[1]);
      std::vector<float>& numbers = kept.emplace_back(static_cast<size_t>(span.elements()));
      for (size_t i = 0; i < numbers.size(); ++i) {
        uint16_t bits;
        std::memcpy(&bits, span.bytes.data() + 2 * i, 2);
        numbers[i] = Bf16ToFloat(bits);
      }
      for (size_t first = 0; first < numbers.size(); first += inputs) {
        float largest = 0.0f;
        for (size_t i = 0; i < inputs; ++i)
          largest = std::max(largest, std::abs(numbers[first + i]));
        const float scale = largest / 448.0f;
        for (size_t i = 0; i < inputs; ++i)
          numbers[first + i] = Fp8ToFloat(FloatToFp8(numbers[first + i] / scale)) * scale;
      }
      span.type = TensorType::kF32;
      span.bytes = {reinterpret_cast<const char*>(numbers.data()), 4 * numbers.size()};
    }
  }

  Checkpoint checkpoint;
  std::list<std::vector<float>> kept;
};

// The CPU's float32 with rounded weights is what fp8 computes, but for keys and values, which are
// bfloat16 there.
TEST_P(CudaNetTest, ScoresInFp8AreThoseOfWeightsThatAreRoundedToFp8) {
  const RoundedCheckpoint rounded(DemoCheckpoint());
  const auto expected =
      ScoresOf(*OnKernels(rounded.checkpoint, WeightElement::kFloat32), Recording()[0]);
  const auto unrounded =
      ScoresOf(*OnKernels(DemoCheckpoint(), WeightElement::kFloat32), Recording()[0]);
  const Loaded loaded = OnDevice(DemoCheckpoint(), DeviceElement::kFp8);
  const auto actual = ScoresOf(*loaded.model, Recording()[0]);
  const double worst = WorstOff(actual, expected), rounding = WorstOff(actual, unrounded);
  EXPECT_TRUE(worst <= 1e-2) << worst;
  EXPECT_TRUE(rounding > 1e-2 && rounding <= 0.3) << rounding;
  // One byte an element; fc stays bfloat16.
  const Loaded half = OnDevice(DemoCheckpoint(), DeviceElement::kBFloat16);
  const double fc = 2.0 * 576 * 1728;
  EXPECT_NEAR(static_cast<double>(loaded.net->step_bytes()) - fc,
              0.5 * (static_cast<double>(half.net->step_bytes()) - fc),
              0.01 * static_cast<double>(half.net->step_bytes()));
}

INSTANTIATE_TEST_SUITE_P(Backends, CudaNetTest, testing::ValuesIn(NetBackends()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace aerie
