// The outcome of a load test, for programs and for people.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/loadtest/options.h"
#include "client/loadtest/reconciliation.h"
#include "client/loadtest/run_result.h"
#include "common/manifest.h"

namespace aerie::loadtest {

// Goes up when a field of the JSON changes its meaning or goes away; new fields leave it.
inline constexpr int kSchemaVersion = 2;

// What the server said about itself.
struct ServerFacts {
  std::string version, revision, drafter, drafter_version;
  int64_t max_k = 0, max_rows_per_call = 0, max_message_bytes = 0, max_sessions = 0;
  int64_t max_context = 0;
};

struct Report {
  LoadOptions options;
  std::vector<std::string> arguments;  // as typed, without the program
  ServerFacts server;
  Manifest manifest;
  RunResult result;
  Reconciliation reconciliation;
  std::string reconciliation_error;  // why it could not be done though it was asked for
};

struct SloResult {
  std::string text;  // as typed
  double value = 0;  // seconds, rounds a second, or tokens
  bool met = false;
};

// What is made of the figures.
struct Verdicts {
  std::vector<SloResult> slo;
  double error_share = 0;  // failed rounds over all rounds, of the whole run
  bool within_budget = false;
  double goodput = 0;  // good rounds a second; 0 when not asked for
  // Why the tester itself may have been what was measured; empty: it was not.
  std::vector<std::string> tester_limits;
  // 0; 1 when calls failed beyond the budget, counts differ, or a fault was answered otherwise; 3
  // when only an SLO was missed.
  int exit_code = 0;
};

Verdicts Judge(const Report& report);

// The truth that --accept stands for, by position; empty for recorded rows and trees, whose drafts
// differ in depth.
std::vector<double> ExpectedByPosition(const LoadOptions& options);

// Events a second of the measured window.
double PerSecond(int64_t count, const RunResult& result);

// One object with the fields that docs/load.md lists, indented, with a line end.
std::string ToJson(const Report& report);
// A table; accept lengths say that the bonus is in.
std::string ToTable(const Report& report);
// The timeline, one line an interval, with a line of names.
std::string ToCsv(const Report& report);
// A page of its own that needs nothing else.
std::string ToHtml(const Report& report);
// One line, no line end.
std::string ToLiveLine(const Interval& interval);

}  // namespace aerie::loadtest
