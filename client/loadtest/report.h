// The outcome of a load test, for programs and for people.
#pragma once

#include <string>
#include <vector>

#include "aerie/v1/draft.pb.h"
#include "client/loadtest/options.h"
#include "client/loadtest/runner.h"

namespace aerie::loadtest {

// Goes up when a field of the JSON changes its meaning or goes away; new fields leave it.
inline constexpr char kReportSchema[] = "aerie-load/1";

struct Report {
  LoadOptions options;
  std::vector<std::string> arguments;  // as typed, without the program
  v1::GetServerInfoResponse server;
  Manifest manifest;
  RunResult result;
};

// One object with the fields that --help lists, indented, with a line end.
std::string ToJson(const Report& report);
// A table; accept lengths say that the bonus is in.
std::string ToTable(const Report& report);
// One line, no line end.
std::string ToLiveLine(const LiveSample& sample);
// 1 when a call failed or the server counted differently, else 0.
int ExitCode(const RunResult& result);

}  // namespace aerie::loadtest
