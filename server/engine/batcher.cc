#include "server/engine/batcher.h"

#include <algorithm>
#include <numeric>

#include "common/check.h"

namespace aerie {

std::vector<PassShare> PlanPass(absl::Span<const int64_t> extend_rows_left,
                                const PassLimits& limits) {
  AERIE_CHECK(limits.max_rows >= 1 && limits.max_sessions >= 1);
  if (extend_rows_left.empty()) return {};
  std::vector<size_t> order(extend_rows_left.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // All but the oldest, which has its place for certain.
  std::stable_sort(order.begin() + 1, order.end(),
                   [&](size_t a, size_t b) { return extend_rows_left[a] < extend_rows_left[b]; });

  std::vector<PassShare> plan;
  int64_t extends = 0;
  for (const size_t candidate : order) {
    if (plan.size() == static_cast<size_t>(limits.max_sessions)) break;
    const bool extends_too = extend_rows_left[candidate] > 0;
    // Each extend of a pass gets a row at least.
    if (extends_too && extends == limits.max_rows) break;
    extends += extends_too ? 1 : 0;
    plan.push_back({candidate, 0});
  }

  // Shortest first: whoever needs less than an equal part leaves the rest to the longer ones.
  std::stable_sort(plan.begin(), plan.end(), [&](const PassShare& a, const PassShare& b) {
    return extend_rows_left[a.candidate] < extend_rows_left[b.candidate];
  });
  int64_t rows_left = limits.max_rows;
  for (PassShare& share : plan) {
    if (extend_rows_left[share.candidate] == 0) continue;
    share.rows = std::min(extend_rows_left[share.candidate], rows_left / extends);
    rows_left -= share.rows;
    --extends;
  }
  std::sort(plan.begin(), plan.end(),
            [](const PassShare& a, const PassShare& b) { return a.candidate < b.candidate; });
  return plan;
}

}  // namespace aerie
