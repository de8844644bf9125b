// aerie-load: puts a draft server under load and reports what a worker would see.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/loadtest/compare.h"
#include "client/loadtest/flags.h"
#include "client/loadtest/load_test.h"
#include "client/loadtest/null_server.h"
#include "client/loadtest/report.h"
#include "client/loadtest/sweep_report.h"

namespace aerie::loadtest {
namespace {

std::atomic<LoadTest*> running{nullptr};  // for the signal handler
std::atomic<bool> interrupted{false};

void StopRunning(int signal) {
  interrupted = true;
  if (LoadTest* const test = running.load()) test->Stop();
  std::signal(signal, SIG_DFL);  // the second one ends the program at once
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "aerie-load: %s\n", std::string(status.message()).c_str());
  return absl::IsInvalidArgument(status) ? 2 : 1;
}

int End(const Ending& ending) {
  std::fputs(ending.text.c_str(), *ending.exit_code == 0 ? stdout : stderr);
  return *ending.exit_code;
}

// To the file, or to standard output for "-"; nothing for an empty path.
bool Write(const std::string& flag, const std::string& path, const std::string& text) {
  if (path.empty()) return true;
  if (path == "-") return std::fputs(text.c_str(), stdout) >= 0;
  std::ofstream file(path);
  file << text << std::flush;
  if (file) return true;
  std::fprintf(stderr,
               "aerie-load: cannot write %s %s; expected a file that can be written; give "
               "another path\n",
               flag.c_str(), path.c_str());
  return false;
}

// On a terminal one line that is written over each second; elsewhere a line every ten, since logs
// are kept.
std::function<void(const Interval&)> LiveLine(bool quiet) {
  if (quiet) return nullptr;
  if (isatty(STDERR_FILENO) != 0) {
    return [](const Interval& interval) {
      std::fprintf(stderr, "\r\033[K%s", ToLiveLine(interval).c_str());
      std::fflush(stderr);
    };
  }
  return [seen = 0](const Interval& interval) mutable {
    if (++seen % 10 == 0) std::fprintf(stderr, "%s\n", ToLiveLine(interval).c_str());
  };
}

absl::StatusOr<Report> RunOnce(const LoadOptions& options) {
  auto test = LoadTest::Prepare(options);
  if (!test.ok()) return test.status();
  running = test->get();
  if (interrupted) (*test)->Stop();
  Report report = (*test)->Run(LiveLine(options.quiet));
  running = nullptr;
  if (!options.quiet && isatty(STDERR_FILENO) != 0) std::fputs("\r\033[K", stderr);
  return report;
}

int RunLoad(int argc, char** argv) {
  const CommandLine line = ParseCommandLine(argc, argv);
  if (line.ending.exit_code.has_value()) return End(line.ending);
  const LoadOptions& options = line.options;
  absl::StatusOr<Report> report = RunOnce(options);
  if (!report.ok()) return Fail(report.status());
  report->arguments.assign(argv + 1, argv + argc);
  bool to_terminal = false;
  for (const std::string* path :
       {&options.json_path, &options.csv_path, &options.hdr_path, &options.html_path}) {
    to_terminal = to_terminal || *path == "-";
  }
  if (!options.quiet && !to_terminal) std::fputs(ToTable(*report).c_str(), stdout);
  // All of them, whichever cannot be written.
  bool written = Write("--json", options.json_path, ToJson(*report));
  written = Write("--csv", options.csv_path, ToCsv(*report)) && written;
  written = Write("--hdr", options.hdr_path, report->result.hdr_log) && written;
  written = Write("--html", options.html_path, ToHtml(*report)) && written;
  return written ? Judge(*report).exit_code : 1;
}

int RunSweepCommand(int argc, char** argv) {
  const SweepLine line = ParseSweep(argc, argv);
  if (line.ending.exit_code.has_value()) return End(line.ending);
  const SweepOver over = line.sweep.over;
  SweepReport report;
  report.sweep = line.sweep;
  report.options = line.options;
  report.arguments.assign(argv, argv + argc);
  report.started = absl::Now();
  const bool to_terminal = line.options.json_path == "-" || line.options.html_path == "-";
  const bool talks = !line.options.quiet && !to_terminal;
  if (talks) std::fputs(RowNames(over).c_str(), stdout);
  bool failed = false;
  auto result = RunSweep(line.sweep, [&](double level) -> absl::StatusOr<SweepPoint> {
    if (interrupted) return absl::CancelledError("the sweep was stopped; start it again");
    absl::StatusOr<LoadOptions> options = OptionsAt(level, over, line.options);
    if (!options.ok()) return options.status();
    absl::StatusOr<Report> run = RunOnce(*options);
    if (!run.ok()) return run.status();
    report.server = run->server;
    report.manifest = run->manifest;
    // Counts that differ make every figure doubtful, whatever the point is worth.
    if (run->result.whole.difference_count > 0 || run->reconciliation.differences() > 0 ||
        !run->reconciliation_error.empty() || run->result.whole.surprise_count() > 0) {
      failed = true;
      std::fputs(ToTable(*run).c_str(), stderr);
    }
    SweepPoint point = PointOf(*run);
    point.level = level;
    if (talks) {
      std::fputs(ToRow(point, over).c_str(), stdout);
      std::fflush(stdout);
    }
    return point;
  });
  if (!result.ok()) return Fail(result.status());
  report.result = *std::move(result);
  if (talks) std::fputs(absl::StrCat("\n", ToTable(report)).c_str(), stdout);
  bool written = Write("--json", line.options.json_path, ToJson(report));
  written = Write("--html", line.options.html_path, ToHtml(report)) && written;
  if (!written || failed || !report.result.knee.has_value()) return 1;
  return !line.options.slo.empty() && !report.result.best_within_slo.has_value() ? 3 : 0;
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  if (file) text << file.rdbuf();
  if (file) return text.str();
  return absl::NotFoundError(
      absl::StrCat("cannot read ", path, "; expected a report that --json wrote; check the path"));
}

int RunCompare(int argc, char** argv) {
  const CompareLine line = ParseCompare(argc, argv);
  if (line.ending.exit_code.has_value()) return End(line.ending);
  const absl::StatusOr<std::string> before = ReadFile(line.before), after = ReadFile(line.after);
  for (const auto& text : {before, after}) {
    if (!text.ok()) return Fail(text.status());
  }
  const absl::StatusOr<Comparison> comparison = Compare(*before, *after, line.tolerance);
  if (!comparison.ok()) {
    Fail(comparison.status());
    return 1;
  }
  const std::string text = line.json ? ToJson(*comparison, line.tolerance) : ToTable(*comparison);
  std::fputs(text.c_str(), stdout);
  return comparison->worse() ? 3 : 0;
}

int RunNullServer(int argc, char** argv) {
  const NullServerLine line = ParseNullServer(argc, argv);
  if (line.ending.exit_code.has_value()) return End(line.ending);
  // Blocked before any thread is started, so that none but this one takes them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const auto server = NullServer::Start(
      {line.listen, line.hidden_size, line.captures, line.vocab_size, line.max_k});
  if (!server.ok()) return Fail(server.status());
  std::fprintf(stderr, "a null server listens on %s\n", (*server)->address().c_str());
  if (!Write("--port-file", line.port_file, (*server)->address() + "\n")) return 1;
  int received = 0;
  sigwait(&signals, &received);
  return 0;
}

int Main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "compare") return RunCompare(argc - 1, argv + 1);
  if (command == "null-server") return RunNullServer(argc - 1, argv + 1);
  // A metrics page that hangs up is told of like every other failure, in place of ending the test.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGINT, StopRunning);
  std::signal(SIGTERM, StopRunning);
  return command == "sweep" ? RunSweepCommand(argc - 1, argv + 1) : RunLoad(argc, argv);
}

}  // namespace
}  // namespace aerie::loadtest

int main(int argc, char** argv) { return aerie::loadtest::Main(argc, argv); }
