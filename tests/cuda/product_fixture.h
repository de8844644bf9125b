// Matrices for tests of products, as a device holds them and as numbers.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "common/float8.h"
#include "gtest/gtest.h"
#include "tests/cuda/backends.h"

namespace aerie {

// A few thousand float32 additions, spread over 32 lanes.
constexpr double kTolerance = 2e-5;

inline void ExpectNear(const std::vector<float>& actual, const std::vector<double>& expected,
                       double tolerance = kTolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_TRUE(std::abs(actual[i] - expected[i]) <= tolerance * (1.0 + std::abs(expected[i])))
        << actual[i] << " for " << expected[i] << " at " << i;
  }
}

// Weights as the device holds them, and as numbers.
struct Weights {
  Weights(uint32_t seed, DeviceElement of, int64_t rows, int64_t columns)
      : channels(rows), inputs(columns), element(of) {
    const std::vector<float> values = Numbers(seed, channels * inputs);
    stride = (inputs + kStrideElements - 1) / kStrideElements * kStrideElements;
    const int64_t bytes = ElementBytes(element);
    packed.resize(channels * stride * bytes);
    for (int64_t c = 0; c < channels; ++c) {
      scales.push_back((0.25f + 0.125f * static_cast<float>(c % 5)) /
                       (element == DeviceElement::kFp8 ? 448.0f : 127.0f));
      for (int64_t i = 0; i < inputs; ++i) {
        const float value = values[c * inputs + i];
        char* const at = packed.data() + (c * stride + i) * bytes;
        if (element == DeviceElement::kFloat32) {
          std::memcpy(at, &value, 4);
          numbers.push_back(value);
        } else if (element == DeviceElement::kBFloat16) {
          const uint16_t half = Bf16Of(value);
          std::memcpy(at, &half, 2);
          numbers.push_back(OfBf16(half));
        } else if (element == DeviceElement::kFp8) {
          const uint8_t code = FloatToFp8(value * 448.0f);
          std::memcpy(at, &code, 1);
          numbers.push_back(static_cast<double>(Fp8ToFloat(code)) * scales.back());
        } else {
          const auto integer = static_cast<int8_t>(std::lround(value * 127.0f));
          std::memcpy(at, &integer, 1);
          numbers.push_back(static_cast<double>(integer) * scales.back());
        }
      }
    }
  }

  double Sum(int64_t channel, const float* row) const {
    double sum = 0.0;
    for (int64_t i = 0; i < inputs; ++i) sum += numbers[channel * inputs + i] * row[i];
    return sum;
  }

  int64_t channels, inputs, stride = 0;
  DeviceElement element;
  std::vector<char> packed;
  std::vector<float> scales;
  std::vector<double> numbers;
};

class ProductKernelTest : public BackendTest {
 protected:
  DeviceMatrix Upload(const Weights& weights) {
    return {.weights = In(weights.packed),
            .scales = ElementBytes(weights.element) == 1 ? In(weights.scales) : nullptr,
            .channels = weights.channels,
            .inputs = weights.inputs,
            .stride = weights.stride,
            .element = weights.element};
  }
};

constexpr DeviceElement kElements[] = {DeviceElement::kFloat32, DeviceElement::kBFloat16,
                                       DeviceElement::kInt8, DeviceElement::kFp8};

}  // namespace aerie
