// Two JSON reports side by side: what got better, what got worse, and whether they are of the same
// test at all.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace aerie::loadtest {

struct ComparedFigure {
  std::string name;  // the path of the field, e.g. latency_seconds.round.p99
  double before = 0, after = 0;
  double change = 0;    // (after - before) / before; 0 where both are 0
  bool judged = true;   // false: told, but not a reason to fail
  bool better = false;  // the change is to the good
  bool worse = false;   // to the bad, beyond the tolerance
};

struct Comparison {
  std::vector<ComparedFigure> figures;
  // Facts that differ: then the figures may differ for another reason than one looks for.
  std::vector<std::string> notes;

  bool worse() const;
};

// Texts of two reports of the same kind. INVALID_ARGUMENT: one is none of this schema version, or
// they are of different kinds. `tolerance` is the share by which a figure may get worse.
absl::StatusOr<Comparison> Compare(const std::string& before, const std::string& after,
                                   double tolerance);

std::string ToTable(const Comparison& comparison);
std::string ToJson(const Comparison& comparison, double tolerance);

}  // namespace aerie::loadtest
