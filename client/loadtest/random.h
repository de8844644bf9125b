// A small random generator whose numbers are the same on every platform, unlike those of <random>'s
// distributions.
#pragma once

#include <cstdint>

namespace aerie::loadtest {

class Random {
 public:
  Random(uint64_t seed, uint64_t stream) : state_(Mix(seed ^ Mix(stream + 1))) {}

  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15u;
    return Mix(state_);
  }
  // In [0, 1).
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }
  // In 0..limit-1.
  int32_t Below(int32_t limit) {
    return static_cast<int32_t>(Next() % static_cast<uint64_t>(limit));
  }

 private:
  // The finaliser of SplitMix64.
  static uint64_t Mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  uint64_t state_;
};

}  // namespace aerie::loadtest
