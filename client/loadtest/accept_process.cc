#include "client/loadtest/accept_process.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/check.h"

namespace aerie::loadtest {
namespace {

constexpr absl::string_view kFixedPrefix = "fixed:";

}  // namespace

AcceptProcess AcceptProcess::ByChance(std::vector<double> probabilities) {
  AERIE_CHECK(!probabilities.empty()) << "no probabilities";
  AcceptProcess process;
  process.probabilities_ = std::move(probabilities);
  return process;
}

AcceptProcess AcceptProcess::Fixed(std::vector<int32_t> counts) {
  AERIE_CHECK(!counts.empty()) << "no counts";
  AcceptProcess process;
  process.counts_ = std::move(counts);
  return process;
}

absl::StatusOr<AcceptProcess> AcceptProcess::Parse(absl::string_view text) {
  const auto bad = [text] {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text.substr(0, 60),
                     "' is no acceptance; expected probabilities from 0 to 1, or fixed: and "
                     "numbers of tokens; write for example 0.7,0.5 or fixed:3,0,2"));
  };
  absl::string_view numbers = text;
  if (absl::ConsumePrefix(&numbers, kFixedPrefix)) {
    std::vector<int32_t> counts;
    for (const absl::string_view part : absl::StrSplit(numbers, ',')) {
      if (!absl::SimpleAtoi(part, &counts.emplace_back()) || counts.back() < 0) return bad();
    }
    return Fixed(std::move(counts));
  }
  std::vector<double> probabilities;
  for (const absl::string_view part : absl::StrSplit(numbers, ',')) {
    double& p = probabilities.emplace_back();
    if (!absl::SimpleAtod(part, &p) || !(p >= 0.0 && p <= 1.0)) return bad();
  }
  return ByChance(std::move(probabilities));
}

int32_t AcceptProcess::Draw(int64_t round, int32_t depth, Random& random) const {
  if (probabilities_.empty()) {
    return std::min(depth, counts_[static_cast<size_t>(round) % counts_.size()]);
  }
  int32_t kept = 0;
  while (kept < depth) {
    const size_t at = std::min(static_cast<size_t>(kept), probabilities_.size() - 1);
    if (!(random.Uniform() < probabilities_[at])) break;
    ++kept;
  }
  return kept;
}

std::vector<double> AcceptProcess::ByPosition(int32_t depth) const {
  std::vector<double> shares;
  double share = 1.0;
  for (int32_t position = 0; position < depth; ++position) {
    if (probabilities_.empty()) {
      const auto kept = std::count_if(counts_.begin(), counts_.end(),
                                      [position](int32_t count) { return count > position; });
      share = static_cast<double>(kept) / static_cast<double>(counts_.size());
    } else {
      share *= probabilities_[std::min(static_cast<size_t>(position), probabilities_.size() - 1)];
    }
    shares.push_back(share);
  }
  return shares;
}

std::string AcceptProcess::ToString() const {
  if (probabilities_.empty()) return absl::StrCat(kFixedPrefix, absl::StrJoin(counts_, ","));
  return absl::StrJoin(probabilities_, ",");
}

}  // namespace aerie::loadtest
