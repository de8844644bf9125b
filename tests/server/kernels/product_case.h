// Rows and weights of a product, and what comes out in float64.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/kernels/product.h"
#include "tests/server/kernels/levels.h"

namespace aerie {

struct ProductCase {
  std::string name;
  CpuLevel level;
  WeightElement element;

  // Whether inputs become bfloat16, like the weights.
  bool RoundsInputs() const {
    return element == WeightElement::kBFloat16 && level == CpuLevel::kAvx512Bf16;
  }
};

// Every level with every element.
std::vector<ProductCase> ProductCases();

// Numbers around 0 of a fixed sequence; `seed` picks it.
std::vector<float> SomeNumbers(int64_t count, uint32_t seed);

// What the packed weights stand for: `weight` rounded as the element says, `largest` being the
// largest absolute value of its channel.
double RoundedWeight(float weight, float largest, WeightElement element);

// A product in float64 over what is multiplied, and how far float32 may be off.
struct Expectation {
  double value = 0.0;
  double tolerance = 0.0;
};
Expectation Expect(const float* weights, const float* inputs, int64_t count,
                   const ProductCase& test);

}  // namespace aerie
