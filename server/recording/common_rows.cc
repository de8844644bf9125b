#include "server/recording/common_rows.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "common/check.h"
#include "server/checkpoint/digest.h"

namespace aerie {
namespace {

// The digest of a prefix from that of the prefix one token shorter.
uint64_t Extend(uint64_t prefix, int32_t token) {
  return Fingerprint64({reinterpret_cast<const char*>(&token), sizeof(token)}, prefix);
}

// Reorders `values`.
float Median(absl::Span<float> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::vector<RowPair> CommonRows(const Recording& a, const Recording& b, size_t most) {
  struct Place {
    size_t sample;
    int64_t position;
  };
  std::unordered_map<uint64_t, Place> places;
  for (size_t s = 0; s < b.samples().size(); ++s) {
    uint64_t prefix = 0;
    for (size_t p = 0; p < b.samples()[s].tokens.size(); ++p) {
      prefix = Extend(prefix, b.samples()[s].tokens[p]);
      places.emplace(prefix, Place{s, static_cast<int64_t>(p)});
    }
  }
  std::vector<RowPair> pairs;
  std::unordered_set<uint64_t> taken;
  for (size_t s = 0; s < a.samples().size(); ++s) {
    uint64_t prefix = 0;
    for (size_t p = 0; p < a.samples()[s].tokens.size(); ++p) {
      prefix = Extend(prefix, a.samples()[s].tokens[p]);
      const auto found = places.find(prefix);
      if (found == places.end()) break;  // no longer prefix can be there either
      if (p > 0 && taken.insert(prefix).second) {
        pairs.push_back({s, found->second.sample, static_cast<int64_t>(p)});
      }
    }
  }
  if (pairs.size() <= most) return pairs;
  std::vector<RowPair> spread;
  for (size_t i = 0; i < most; ++i) spread.push_back(pairs[i * pairs.size() / most]);
  return spread;
}

double RowDistance(absl::Span<float> a, absl::Span<float> b) {
  AERIE_CHECK(a.size() == b.size() && !a.empty()) << a.size() << ", " << b.size();
  std::vector<float> apart(a.size());
  for (size_t c = 0; c < a.size(); ++c) {
    apart[c] = std::abs(a[c] / 2 - b[c] / 2);  // halves: a difference of extremes overflows
    a[c] = std::abs(a[c]);
    b[c] = std::abs(b[c]);
  }
  const double difference = 2 * double{Median(absl::MakeSpan(apart))};
  const double size = (double{Median(a)} + double{Median(b)}) / 2;
  if (size > 0) return difference / size;
  return difference > 0 ? 2.0 : 0.0;  // more than half of both rows is zero
}

}  // namespace aerie
