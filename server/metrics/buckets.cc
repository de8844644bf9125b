#include "server/metrics/buckets.h"

namespace aerie {

std::vector<double> DraftDurationBuckets() {
  return {25e-6,  40e-6, 63e-6, 100e-6, 160e-6, 250e-6, 400e-6, 630e-6, 1e-3, 1.6e-3, 2.5e-3, 4e-3,
          6.3e-3, 10e-3, 16e-3, 25e-3,  40e-3,  63e-3,  0.1,    0.16,   0.25, 0.4,    0.63,   1};
}

std::vector<double> RpcDurationBuckets() {
  std::vector<double> bounds = DraftDurationBuckets();
  bounds.insert(bounds.end(), {2.5, 10, 60, 600, 3600});
  return bounds;
}

std::vector<double> AcceptLengthBuckets(int32_t max_k) {
  std::vector<double> bounds;
  for (int32_t quarters = 4; quarters <= 4 * (max_k + 1); ++quarters) {
    bounds.push_back(quarters / 4.0);
  }
  return bounds;
}

std::vector<double> RatioBuckets() {
  std::vector<double> bounds;
  // Divided, not summed up: 0.15 must be the number that a request with 3 of 20 has, or it lands
  // one bucket high.
  for (int32_t twentieths = 1; twentieths <= 20; ++twentieths) bounds.push_back(twentieths / 20.0);
  return bounds;
}

std::vector<double> TokensPerSecondBuckets() {
  return {1,  2,   3,   5,   7.5, 10,  15,  20,  30,   40,   50,   60,
          80, 100, 150, 200, 300, 400, 600, 800, 1000, 1500, 2500, 5000};
}

std::vector<double> CountBuckets(int32_t most) {
  std::vector<double> bounds;
  int32_t step = 1;
  for (int32_t bound = 1; bound < most; bound += step) {
    bounds.push_back(bound);
    if (bound >= 8 && bound % (8 * step) == 0) step = bound / 4;
  }
  bounds.push_back(most);
  return bounds;
}

std::vector<double> CountBucketsFromZero(int32_t most) {
  std::vector<double> bounds = CountBuckets(most);
  bounds.insert(bounds.begin(), 0.0);
  return bounds;
}

}  // namespace aerie
