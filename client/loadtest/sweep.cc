#include "client/loadtest/sweep.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace aerie::loadtest {
namespace {

constexpr double kKeepsUp = 0.95;
constexpr double kGivesUp = 0.5;

double PerSecondOfLatency(double per_second, absl::Duration latency) {
  return latency > absl::ZeroDuration() ? per_second / absl::ToDoubleSeconds(latency) : 0.0;
}

// Points in the order of their levels, and what follows from them.
class Search {
 public:
  Search(const SweepOptions& options, const SweepProbe& probe) : options_(options), probe_(probe) {}

  // Adds the point at `level` unless there is one. Returns what it is worth.
  absl::StatusOr<SweepPoint> Measure(double level) {
    AERIE_ASSIGN_OR_RETURN(SweepPoint point, probe_(level));
    point.level = level;
    auto& points = result_.points;
    points.insert(std::upper_bound(
                      points.begin(), points.end(), point,
                      [](const SweepPoint& a, const SweepPoint& b) { return a.level < b.level; }),
                  point);
    Settle();
    return point;
  }

  absl::Status Double() {
    for (double level = options_.from; level <= options_.to; level *= 2) {
      AERIE_ASSIGN_OR_RETURN(const SweepPoint point, Measure(level));
      if (!point.KeepsUp()) break;
      if (Worth(point, options_.over) < kGivesUp * BestWorth()) break;
    }
    return absl::OkStatus();
  }

  // Looks between the knee and its neighbours.
  absl::Status Refine() {
    if (!result_.knee.has_value()) return absl::OkStatus();
    const size_t knee = *result_.knee;
    std::vector<double> levels;
    if (knee > 0) AddBetween(knee - 1, &levels);
    if (knee + 1 < result_.points.size()) AddBetween(knee, &levels);
    for (const double level : levels) AERIE_RETURN_IF_ERROR(Measure(level).status());
    return absl::OkStatus();
  }

  const SweepResult& result() const { return result_; }

 private:
  double BestWorth() const {
    return result_.knee.has_value() ? Worth(result_.points[*result_.knee], options_.over) : 0.0;
  }

  // The geometric mean of a point and the next one, when there is a level to be tried there.
  void AddBetween(size_t index, std::vector<double>* levels) const {
    const double low = result_.points[index].level, high = result_.points[index + 1].level;
    double between = std::sqrt(low * high);
    if (options_.over != SweepOver::kRate) between = std::round(between);
    if (between > low && between < high && high / low > 1.02) levels->push_back(between);
  }

  void Settle() {
    result_.knee.reset();
    result_.best_within_slo.reset();
    for (size_t i = 0; i < result_.points.size(); ++i) {
      const SweepPoint& point = result_.points[i];
      if (!point.KeepsUp()) continue;
      if (!result_.knee.has_value() || Worth(point, options_.over) > BestWorth()) result_.knee = i;
      if (point.within_slo) result_.best_within_slo = i;
    }
  }

  const SweepOptions& options_;
  const SweepProbe& probe_;
  SweepResult result_;
};

}  // namespace

absl::Status SweepOptions::Validate() const {
  for (const double value : values) {
    if (!(value > 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--values has ", value, "; give levels above 0"));
    }
  }
  if (values.empty() && !(from > 0 && to >= from)) {
    return absl::InvalidArgumentError(absl::StrCat("--from and --to are ", from, " and ", to,
                                                   "; give two levels above 0, the lower first"));
  }
  if (refine < 0 || refine > 10) {
    return absl::InvalidArgumentError(absl::StrCat("--refine is ", refine, "; give 0 to 10"));
  }
  return absl::OkStatus();
}

bool SweepPoint::KeepsUp() const {
  return within_budget && (asked == 0 || rounds >= kKeepsUp * asked);
}

double Worth(const SweepPoint& point, SweepOver over) {
  switch (over) {
    case SweepOver::kRate:
    case SweepOver::kSessions:
      return PerSecondOfLatency(point.rounds, point.mean);
    case SweepOver::kRows:
      return PerSecondOfLatency(point.rows, point.prompt_mean);
    case SweepOver::kK:
      return point.tokens;
  }
  return 0;
}

const char* SweepRule(SweepOver over) {
  switch (over) {
    case SweepOver::kRate:
      return "the rate with the most rounds done a second per second of mean latency (from the "
             "intended start), among those that keep up: at least 95 % of what was asked for is "
             "done, failures within the budget";
    case SweepOver::kSessions:
      return "the number of sessions with the most rounds done a second per second of mean "
             "latency, among those with failures within the budget";
    case SweepOver::kRows:
      return "the prompt rows with the most rows a second per second of mean prompt latency, among "
             "those with failures within the budget";
    case SweepOver::kK:
      return "the k with the most committed tokens a second, among those with failures within the "
             "budget";
  }
  return "";
}

const char* SweepName(SweepOver over) {
  switch (over) {
    case SweepOver::kRate:
      return "rate";
    case SweepOver::kSessions:
      return "sessions";
    case SweepOver::kRows:
      return "rows";
    case SweepOver::kK:
      return "k";
  }
  return "";
}

absl::StatusOr<SweepResult> RunSweep(const SweepOptions& options, const SweepProbe& probe) {
  AERIE_RETURN_IF_ERROR(options.Validate());
  Search search(options, probe);
  for (const double level : options.values) AERIE_RETURN_IF_ERROR(search.Measure(level).status());
  if (options.values.empty()) {
    AERIE_RETURN_IF_ERROR(search.Double());
    for (int32_t i = 0; i < options.refine; ++i) AERIE_RETURN_IF_ERROR(search.Refine());
  }
  return search.result();
}

}  // namespace aerie::loadtest
