// How often a session's drafts are accepted at each depth, lately.
//
// Conditional: the rate of depth d counts only the proposals whose first d - 1 tokens were kept.
// The product of the first d rates is the chance that a draft is kept to depth d.
#pragma once

#include <cstdint>
#include <vector>

namespace aerie {

class DepthAcceptance {
 public:
  // 0 <= accepted <= proposed.
  void Observe(int32_t proposed, int32_t accepted);

  // The rates of depths 1..depths, each within 0..1. A depth that was not reached for long is
  // thought to fare as the one above it: what was once known of it is forgotten little by little.
  std::vector<double> Rates(int32_t depths) const;

 private:
  struct Depth {
    double reached = 0;  // discounted counts
    double accepted = 0;
  };
  std::vector<Depth> depths_;
};

}  // namespace aerie
