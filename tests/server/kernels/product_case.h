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
};

// Every level with every element.
std::vector<ProductCase> ProductCases();

// Numbers around 0 of a fixed sequence; `seed` picks it.
std::vector<float> SomeNumbers(int64_t count, uint32_t seed);

// What the packed weights stand for: `weight` rounded as the element says, `largest` being the
// largest absolute value of its channel.
double RoundedWeight(float weight, float largest, WeightElement element);

// A product in float64 over rounded weights, and how far float32 may be off.
struct Expectation {
  double value = 0.0;
  double tolerance = 0.0;
};
Expectation Expect(const float* weights, const float* inputs, int64_t count, WeightElement element);

}  // namespace aerie
