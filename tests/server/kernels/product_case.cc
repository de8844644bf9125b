#include "tests/server/kernels/product_case.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

namespace aerie {

std::vector<ProductCase> ProductCases() {
  std::vector<ProductCase> cases;
  for (const NamedLevel& level : Levels()) {
    cases.push_back({level.name + "Float32", level.level, WeightElement::kFloat32});
    cases.push_back({level.name + "BFloat16", level.level, WeightElement::kBFloat16});
    cases.push_back({level.name + "Int8", level.level, WeightElement::kInt8});
  }
  return cases;
}

std::vector<float> SomeNumbers(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> numbers(0.0f, 1.0f);
  std::vector<float> values(count);
  for (float& value : values) value = numbers(random);
  return values;
}

double RoundedWeight(float weight, float largest, WeightElement element) {
  switch (element) {
    case WeightElement::kFloat32:
      return weight;
    case WeightElement::kBFloat16: {
      // Of two neighbours the nearer one, or the even one.
      const auto below = std::bit_cast<uint32_t>(weight) & 0xffff0000u;
      const float low = std::bit_cast<float>(below), high = std::bit_cast<float>(below + 0x10000u);
      const float to_low = std::abs(weight - low), to_high = std::abs(high - weight);
      if (to_low == to_high) return (below & 0x10000u) == 0 ? low : high;
      return to_low < to_high ? low : high;
    }
    case WeightElement::kInt8:
      break;
  }
  const float scale = largest / 127.0f;
  return std::round(weight / scale) * double{scale};
}

Expectation Expect(const float* weights, const float* inputs, int64_t count,
                   const ProductCase& test) {
  const WeightElement input_element =
      test.RoundsInputs() ? WeightElement::kBFloat16 : WeightElement::kFloat32;
  float largest = 0.0f, largest_input = 0.0f;
  for (int64_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::abs(weights[i]));
    largest_input = std::max(largest_input, std::abs(inputs[i]));
  }
  Expectation out;
  double sizes = 0.0, weight_sizes = 0.0;
  for (int64_t i = 0; i < count; ++i) {
    const double weight = RoundedWeight(weights[i], largest, test.element);
    const double input = RoundedWeight(inputs[i], largest_input, input_element);
    out.value += weight * input;
    sizes += std::abs(weight * input);
    weight_sizes += std::abs(weight);
  }
  // 256 roundings in a row stay far below 256 half units in the last place.
  out.tolerance = 2e-6 * sizes;
  // Inputs as 16-bit integers: each is off by half a step.
  if (test.element == WeightElement::kInt8) out.tolerance += weight_sizes * largest_input / 65534.0;
  return out;
}

}  // namespace aerie
