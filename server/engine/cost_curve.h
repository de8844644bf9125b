// What something costs as a function of a small number, learnt from noisy measurements at some of
// them: the target's verification over the number of draft tokens.
//
// Nothing is assumed of the whole curve, which may be flat up to a knee and steep behind it: the
// value at k comes from a line through what was measured near k, lately.
#pragma once

#include <cstdint>
#include <vector>

namespace aerie {

// An average of which about the last `kMemory` measurements matter, and in which a hiccup of the
// machine counts as no more than kLargestJump times what is usual.
class RecentAverage {
 public:
  static constexpr double kMemory = 24;
  static constexpr double kLargestJump = 3;

  void Add(double value);
  bool known() const { return weight_ > 0; }
  double value() const { return value_; }
  double weight() const { return weight_; }  // measurements that it stands for, 0..kMemory
  void Forget(double kept) { weight_ *= kept; }

 private:
  double value_ = 0;
  double weight_ = 0;
};

class CostCurve {
 public:
  // k >= 0, cost >= 0.
  void Observe(int32_t k, double cost);

  // At how many different k a cost was measured so far.
  int32_t places() const { return places_; }
  bool Measured(int32_t k) const;
  // The cost at k. At least one was measured; from one alone no slope is known and the curve is
  // flat.
  double At(int32_t k) const;

 private:
  std::vector<RecentAverage> averages_;  // by k
  int32_t places_ = 0;
};

}  // namespace aerie
