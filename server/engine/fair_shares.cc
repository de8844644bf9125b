#include "server/engine/fair_shares.h"

#include <algorithm>
#include <numeric>

#include "common/check.h"

namespace aerie {
namespace {

// Number `turn` of a sequence over 0..count-1 whose every stretch is spread evenly: multiples of
// the golden ratio.
int64_t SpreadEvenly(uint64_t turn, int64_t count) {
  const uint64_t fraction = (turn * 0x9E3779B97F4A7C15) >> 32;  // of 2^32
  return static_cast<int64_t>((fraction * static_cast<uint64_t>(count)) >> 32);
}

// Claims whose share is still `rows` x weight / `weights`, the parts that are not settled yet.
struct Unsettled {
  std::vector<size_t> claims;
  int64_t rows = 0;
  int64_t weights = 0;
};

// Settles claims whose proportional share lies outside their bounds. Whether the ones below or the
// ones above are settled in a turn depends on which side weighs more: settling the lighter side
// could be wrong, since the rest's shares still move towards it. False: there is none.
bool SettleAtBounds(absl::Span<const ShareClaim> claims, Unsettled* left,
                    std::vector<int64_t>* shares) {
  // By how much the bounds move the sum of shares, in rows x weights.
  int64_t moved = 0;
  bool any = false;
  for (const size_t i : left->claims) {
    const int64_t share = left->rows * claims[i].weight;
    const int64_t bounded =
        std::clamp(share, claims[i].least * left->weights, claims[i].most * left->weights);
    moved += bounded - share;
    any |= bounded != share;
  }
  if (!any) return false;
  Unsettled rest;
  rest.rows = left->rows;
  for (const size_t i : left->claims) {
    const int64_t share = left->rows * claims[i].weight;
    if (moved >= 0 && share < claims[i].least * left->weights) {
      (*shares)[i] = claims[i].least;
    } else if (moved <= 0 && share > claims[i].most * left->weights) {
      (*shares)[i] = claims[i].most;
    } else {
      rest.claims.push_back(i);
      rest.weights += claims[i].weight;
      continue;
    }
    rest.rows -= (*shares)[i];
  }
  *left = std::move(rest);
  return true;
}

}  // namespace

std::vector<int64_t> DivideFairly(absl::Span<const ShareClaim> whole_claims, int64_t total,
                                  uint64_t turn) {
  std::vector<ShareClaim> claims(whole_claims.begin(), whole_claims.end());
  std::vector<int64_t> shares(claims.size());
  Unsettled left;
  left.claims.resize(claims.size());
  std::iota(left.claims.begin(), left.claims.end(), size_t{0});
  int64_t least = 0;
  for (ShareClaim& claim : claims) {
    AERIE_CHECK(claim.least >= 0 && claim.least <= claim.most && claim.weight >= 1)
        << claim.least << ".." << claim.most << " by weight " << claim.weight;
    least += claim.least;
    // One for more than the total is as good as one for all of it, and cannot overflow.
    claim.most = std::min(claim.most, total);
    left.rows += claim.most;
    left.weights += claim.weight;
  }
  AERIE_CHECK(least <= total) << least << " of " << total;
  left.rows = std::min(left.rows, total);
  while (SettleAtBounds(claims, &left, &shares)) {
  }
  // What is left divides by weight alone. The claims lie side by side on a line of `rows`, and each
  // gets the whole rows that end within it; where the first row begins changes from turn to turn.
  if (left.claims.empty()) return shares;
  int64_t reached = SpreadEvenly(turn, left.weights);
  for (const size_t i : left.claims) {
    const int64_t begin = reached / left.weights;
    reached += left.rows * claims[i].weight;
    shares[i] = reached / left.weights - begin;
  }
  return shares;
}

}  // namespace aerie
