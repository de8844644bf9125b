// A sweep for programs and for people, and how one point of it is run.
#pragma once

#include <string>
#include <vector>

#include "client/loadtest/report.h"
#include "client/loadtest/sweep.h"

namespace aerie::loadtest {

struct SweepReport {
  SweepOptions sweep;
  LoadOptions options;  // of each point, but what is swept
  std::vector<std::string> arguments;
  absl::Time started;
  ServerFacts server;
  Manifest manifest;
  SweepResult result;
};

// The load of one point. INVALID_ARGUMENT: a level that is none, e.g. half a session.
absl::StatusOr<LoadOptions> OptionsAt(double level, SweepOver over, LoadOptions options);
SweepPoint PointOf(const Report& report);

std::string ToJson(const SweepReport& report);
std::string ToTable(const SweepReport& report);
std::string ToHtml(const SweepReport& report);
// One line of the table, with a line end: what a sweep says while it runs.
std::string ToRow(const SweepPoint& point, SweepOver over);
std::string RowNames(SweepOver over);

}  // namespace aerie::loadtest
