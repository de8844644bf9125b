#include "server/model/top_k.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "common/check.h"

namespace aerie {
namespace {

constexpr uint32_t kExponent = 0x7f800000;

// One pass of integer operations, which compilers turn into vector code; comparisons of floats they
// may not reorder.
bool AllFinite(absl::Span<const float> values) {
  uint32_t bad = 0;
  for (const float value : values) bad |= (std::bit_cast<uint32_t>(value) & kExponent) == kExponent;
  return bad == 0;
}

double LogSumExp(absl::Span<const float> logits, float largest) {
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

}  // namespace

std::optional<std::vector<ScoredToken>> TopK(absl::Span<const float> logits, int32_t k,
                                             absl::Span<const int32_t> draft_to_target) {
  AERIE_CHECK(k >= 1 && static_cast<size_t>(k) <= logits.size() &&
              draft_to_target.size() == logits.size())
      << k << " of " << logits.size();
  if (!AllFinite(logits)) return std::nullopt;

  // Best first. Ids come in ascending order, so a newcomer has to beat an equal score to pass it:
  // lower ids win.
  std::vector<int32_t> best;
  best.reserve(k + 1);
  for (int32_t id = 0; id < static_cast<int32_t>(logits.size()); ++id) {
    if (best.size() == static_cast<size_t>(k) && !(logits[id] > logits[best.back()])) continue;
    best.insert(std::upper_bound(best.begin(), best.end(), id,
                                 [&](int32_t a, int32_t b) { return logits[a] > logits[b]; }),
                id);
    if (best.size() > static_cast<size_t>(k)) best.pop_back();
  }
  const double log_sum = LogSumExp(logits, logits[best.front()]);
  std::vector<ScoredToken> top;
  top.reserve(best.size());
  for (const int32_t id : best) {
    top.push_back({draft_to_target[id], static_cast<float>(logits[id] - log_sum)});
  }
  return top;
}

}  // namespace aerie
