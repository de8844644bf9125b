// What something costs as a function of a small number, learnt from noisy measurements at some of
// them: the target's verification over the number of draft tokens.
//
// Nothing is assumed of the whole curve, which may be flat up to a knee and steep behind it: the
// value at k comes from a line through what was measured near k, lately.
#pragma once

#include <cstdint>
#include <vector>

namespace aerie {

// An average of which about the last `kMemory` measurements matter. One measurement far from it is
// taken for a hiccup of the machine and counts only as far as `kUsualFactor` goes; two in a row on
// the same side are taken for a change, and the average begins anew.
class RecentAverage {
 public:
  static constexpr double kMemory = 24;
  static constexpr double kUsualFactor = 1.6;

  // True: it began anew.
  bool Add(double value);
  bool known() const { return weight_ > 0; }
  double value() const { return value_; }
  double weight() const { return weight_; }  // measurements that it stands for, 0..kMemory
  // Weighs `kept` of what it did, but no less than `least` if it weighed that much.
  void Forget(double kept, double least);

 private:
  double value_ = 0;
  double weight_ = 0;
  int surprise_ = 0;  // of the last measurement: -1 below, 1 above, 0 as usual
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
