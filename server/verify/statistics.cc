#include "server/verify/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/check.h"
#include "server/verify/student_t.h"

namespace aerie {
namespace {

constexpr double kMaxRowsTold = 1e9;

std::optional<int64_t> RowsWithin(double rows) {
  if (!(rows <= kMaxRowsTold)) return std::nullopt;
  return static_cast<int64_t>(std::ceil(rows));
}

// The standard error per square root of a row: it shrinks as more sequences of this kind come in.
double ErrorOfOneRow(const PairedTest& test) {
  return test.standard_error * std::sqrt(static_cast<double>(test.rows));
}

// By how much the true difference may miss the measured one, with the confidence that equivalence
// asks for: each side by itself at 5 %, as usual in tests of equivalence.
double HalfWidth(const PairedTest& test) {
  constexpr double kBothSides = 0.10;
  return TwoSidedQuantile(kBothSides, test.sequences - 1) * test.standard_error;
}

}  // namespace

PairedTest ComparePaired(const RowPlan& plan, absl::Span<const float> reference,
                         absl::Span<const float> other) {
  AERIE_CHECK(static_cast<int64_t>(reference.size()) == plan.rows() &&
              other.size() == reference.size());
  struct Cluster {
    double sum = 0.0;
    int64_t rows = 0;
  };
  std::vector<Cluster> clusters;
  PairedTest test;
  double sum = 0.0;
  size_t row = 0;
  for (const RowRange& range : plan.ranges) {
    Cluster cluster;
    for (int64_t i = 0; i < range.count; ++i, ++row) {
      // One that is infinite is outside the draft vocabulary, for both.
      if (std::isinf(reference[row]) || std::isinf(other[row])) continue;
      cluster.sum += double{reference[row]} - double{other[row]};
      ++cluster.rows;
    }
    if (cluster.rows == 0) continue;
    sum += cluster.sum;
    test.rows += cluster.rows;
    clusters.push_back(cluster);
  }
  test.sequences = static_cast<int32_t>(clusters.size());
  if (test.rows == 0) return test;
  test.difference = sum / static_cast<double>(test.rows);
  if (test.sequences < kMinSequences) return test;
  // The jackknife over sequences: unlike the plain residuals, it is not too sure of itself when
  // sequences are few and of different lengths.
  const double count = test.sequences;
  double squares = 0.0;
  for (const Cluster& cluster : clusters) {
    const double without = (sum - cluster.sum) / static_cast<double>(test.rows - cluster.rows);
    squares += (without - test.difference) * (without - test.difference);
  }
  test.standard_error = std::sqrt(squares * (count - 1.0) / count);
  if (test.standard_error > 0.0) {
    test.t = test.difference / test.standard_error;
  } else if (test.difference != 0.0) {
    test.t = std::copysign(std::numeric_limits<double>::infinity(), test.difference);
  }
  test.p_value = TwoSidedP(test.t, count - 1.0);
  return test;
}

void AdjustByHolm(absl::Span<PairedTest* const> tests) {
  std::vector<PairedTest*> sorted(tests.begin(), tests.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const PairedTest* a, const PairedTest* b) { return a->p_value < b->p_value; });
  double largest = 0.0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const double scaled = sorted[i]->p_value * static_cast<double>(sorted.size() - i);
    largest = std::max(largest, std::min(scaled, 1.0));
    sorted[i]->p_adjusted = largest;
  }
}

Standing StandingOf(const PairedTest& test, const StatisticsOptions& options) {
  if (test.sequences < kMinSequences) return Standing::kOpen;
  const bool differs = test.p_adjusted < options.alpha;
  // A difference that shows and is above the margin beats everything; one below it may be real and
  // still cost nothing.
  if (differs && test.difference > 0.0) return Standing::kExcluded;
  if (differs && -test.difference > options.margin) return Standing::kBetter;
  if (std::abs(test.difference) + HalfWidth(test) < options.margin) return Standing::kEquivalent;
  return Standing::kOpen;
}

std::optional<int64_t> RowsForThreeSigma(const PairedTest& test) {
  if (test.sequences < kMinSequences || test.difference == 0.0) return std::nullopt;
  const double ratio = 3.0 * ErrorOfOneRow(test) / test.difference;
  return RowsWithin(ratio * ratio);
}

std::optional<int64_t> RowsToSettle(const PairedTest& test, const StatisticsOptions& options) {
  std::optional<int64_t> apart = RowsForThreeSigma(test);
  const double room = options.margin - std::abs(test.difference);
  if (test.sequences < kMinSequences || !(room > 0.0)) return apart;
  const double ratio = 2.0 * ErrorOfOneRow(test) / room;
  const std::optional<int64_t> alike = RowsWithin(ratio * ratio);
  if (!alike.has_value()) return apart;
  return apart.has_value() ? std::min(*apart, *alike) : alike;
}

}  // namespace aerie
