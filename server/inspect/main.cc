// aerie-inspect: says what an EAGLE-3 head is and everything for which it would be refused.
//
// Exit codes: 0 the head loads, 2 it is refused, 1 the command line cannot be read.
#include <cstdio>
#include <string>
#include <vector>

#include "server/inspect/inspect_flags.h"
#include "server/inspect/inspect_report.h"

int main(int argc, char** argv) {
  const auto options = aerie::ParseInspectFlags(std::vector<std::string>(argv + 1, argv + argc));
  if (!options.ok()) {
    std::fprintf(stderr, "aerie-inspect: %s\n", std::string(options.status().message()).c_str());
    return 1;
  }
  if (options->print.has_value()) {
    std::fputs(options->print->c_str(), stdout);
    return 0;
  }
  const aerie::InspectReport report = aerie::MakeReport(
      aerie::InspectCheckpoint(options->drafter, options->target, options->checkpoint));
  const std::string text = options->json
                               ? aerie::ReportAsJson(report, options->gigabytes_per_second)
                               : aerie::ReportAsText(report, options->gigabytes_per_second);
  std::fputs(text.c_str(), stdout);
  return report.ok ? 0 : 2;
}
