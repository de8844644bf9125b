// How many draft tokens a made-up target keeps: by chance, position by position, or as a list says.
// The true accept length is known either way, whatever the drafter does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/loadtest/random.h"

namespace aerie::loadtest {

// Immutable.
class AcceptProcess {
 public:
  // Draft token i is kept with probability [i] when all before it were; the last one holds for all
  // behind it. Not empty, each 0..1.
  static AcceptProcess ByChance(std::vector<double> probabilities);
  // Round r keeps [r modulo their count] tokens, or the whole draft when that is shorter. Not
  // empty, each >= 0.
  static AcceptProcess Fixed(std::vector<int32_t> counts);
  // "0.7,0.5" and "fixed:3,0,2". INVALID_ARGUMENT: neither.
  static absl::StatusOr<AcceptProcess> Parse(absl::string_view text);

  // Of a draft with `depth` levels. Draws no more numbers than it needs.
  int32_t Draw(int64_t round, int32_t depth, Random& random) const;
  // The truth: the share of drafts with `depth` levels that are kept at each position.
  std::vector<double> ByPosition(int32_t depth) const;
  // As Parse reads it.
  std::string ToString() const;

 private:
  std::vector<double> probabilities_;  // empty: fixed
  std::vector<int32_t> counts_;
};

}  // namespace aerie::loadtest
