// aerie-load: puts a draft server under load and reports what a worker would see.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <string>

#include "client/loadtest/load_test.h"
#include "client/loadtest/options.h"
#include "client/loadtest/report.h"

namespace aerie::loadtest {
namespace {

LoadTest* running = nullptr;  // for the signal handler

void StopRunning(int signal) {
  running->Stop();
  std::signal(signal, SIG_DFL);  // the second one ends the program at once
}

bool WriteJson(const std::string& path, const std::string& json) {
  if (path == "-") return std::fputs(json.c_str(), stdout) >= 0;
  std::ofstream file(path);
  file << json << std::flush;
  if (file) return true;
  std::fprintf(stderr, "aerie-load: cannot write --json %s; give a file that can be written\n",
               path.c_str());
  return false;
}

// On a terminal one line that is written over; elsewhere nothing, since logs are no place for it.
std::function<void(const LiveSample&)> LiveLine(bool quiet) {
  if (quiet || isatty(STDERR_FILENO) == 0) return nullptr;
  return [](const LiveSample& sample) {
    std::fprintf(stderr, "\r\033[K%s", ToLiveLine(sample).c_str());
    std::fflush(stderr);
  };
}

int Main(int argc, char** argv) {
  CommandLine line = ParseCommandLine(argc, argv);
  if (line.exit_code.has_value()) {
    std::fputs(line.text.c_str(), *line.exit_code == 0 ? stdout : stderr);
    return *line.exit_code;
  }
  const LoadOptions& options = line.options;
  auto test = LoadTest::Prepare(options);
  if (!test.ok()) {
    std::fprintf(stderr, "aerie-load: %s\n", std::string(test.status().message()).c_str());
    return absl::IsInvalidArgument(test.status()) ? 2 : 1;
  }
  running = test->get();
  std::signal(SIGINT, StopRunning);
  std::signal(SIGTERM, StopRunning);
  const auto live = LiveLine(options.quiet);
  Report report = (*test)->Run(live);
  report.arguments.assign(argv + 1, argv + argc);
  if (live) std::fputs("\r\033[K", stderr);
  if (!options.quiet && options.json_path != "-") std::fputs(ToTable(report).c_str(), stdout);
  if (!options.json_path.empty() && !WriteJson(options.json_path, ToJson(report))) return 1;
  return ExitCode(report.result);
}

}  // namespace
}  // namespace aerie::loadtest

int main(int argc, char** argv) { return aerie::loadtest::Main(argc, argv); }
