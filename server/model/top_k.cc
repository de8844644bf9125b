#include "server/model/top_k.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "common/check.h"
#include "server/kernels/log_sum_exp.h"

namespace aerie {
namespace {

// Draft ids, best first. Few of many scores enter once the first have been seen: a score is
// compared with the worst of the best, and only a better one disturbs their heap.
std::vector<int32_t> Best(absl::Span<const float> logits, int32_t k) {
  const auto better = [logits](int32_t a, int32_t b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
  };
  std::vector<int32_t> best(k);
  for (int32_t id = 0; id < k; ++id) best[id] = id;
  std::make_heap(best.begin(), best.end(), better);  // the worst is at the front
  float worst = logits[best.front()];
  const auto count = static_cast<int32_t>(logits.size());
  // An equal score has a higher id than all that are in, and stays outside.
  for (int32_t id = k; id < count; ++id) {
    if (!(logits[id] > worst)) continue;
    std::pop_heap(best.begin(), best.end(), better);
    best.back() = id;
    std::push_heap(best.begin(), best.end(), better);
    worst = logits[best.front()];
  }
  std::sort_heap(best.begin(), best.end(), better);
  return best;
}

}  // namespace

RowOutput JudgeRow(absl::Span<const float> logits, int32_t k, int32_t probe,
                   absl::Span<const int32_t> draft_to_target) {
  AERIE_CHECK(k >= 1 && static_cast<size_t>(k) <= logits.size() &&
              draft_to_target.size() == logits.size())
      << k << " of " << logits.size();
  const ScoreSummary summary = Summarise(logits.data(), static_cast<int64_t>(logits.size()));
  RowOutput out;
  out.finite = summary.finite;
  if (!summary.finite) return out;
  const auto log_prob = [&](int64_t id) {
    return static_cast<float>(logits[id] - summary.log_sum_exp);
  };
  out.top.reserve(k);
  for (const int32_t id : Best(logits, k)) out.top.push_back({draft_to_target[id], log_prob(id)});
  if (probe >= 0) {
    const auto found = std::lower_bound(draft_to_target.begin(), draft_to_target.end(), probe);
    out.probe_log_prob = found != draft_to_target.end() && *found == probe
                             ? log_prob(found - draft_to_target.begin())
                             : -std::numeric_limits<float>::infinity();
  }
  return out;
}

}  // namespace aerie
