#include "client/loadtest/flags.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "client/loadtest/load_flags.h"
#include "common/status_macros.h"

namespace aerie::loadtest {
namespace {

constexpr char kLoadFooter[] = R"(
Every session sends its prompt's rows, then rounds: it drafts k tokens, keeps as many as its made-up
target accepts (--accept, or the recording), and sends the rows of these and of one more token. It
closes with the last tokens, and the server's record is compared with what the session counted.
Without --rate each session starts a round when its last one is done (closed loop); with it rounds
start when they are meant to, and latencies count from there (open loop).

More: aerie-load sweep, aerie-load compare, aerie-load null-server, each with --help. Fields of the
reports: docs/load.md.

Exit code: 0 fine; 1 errors beyond the budget, or the server counted differently, or a fault was
answered otherwise than it must be; 2 bad usage; 3 an SLO was missed.)";

constexpr char kSweepFooter[] = R"(
Each level is a run of its own, --duration long with --warmup left out [defaults: 10s and 2s]. A
search doubles from --from on until a level does not keep up (less than 95 % of an open loop's
rounds are done, or more fail than may) or is worth less than half of the best one, then looks
between the knee and its neighbours. The knee: of rate and sessions, the most rounds a second per
second of mean latency; of rows, the same of rows and the prompt's latency; of k, the most committed
tokens a second.

Exit code: 0 a knee was found; 1 none, or a run could not be made; 2 bad usage; 3 no level keeps to
the SLO.)";

constexpr char kCompareFooter[] = R"(
Exit code: 0 nothing is worse by more than the tolerance; 1 a file cannot be read or is no report;
2 bad usage; 3 something is worse.)";

std::string PathsToStandardOutput(const LoadOptions& o) {
  int count = 0;
  for (const std::string* path : {&o.json_path, &o.csv_path, &o.hdr_path, &o.html_path}) {
    if (*path == "-") ++count;
  }
  return count > 1 ? "-" : "";
}

}  // namespace

CommandLine ParseCommandLine(int argc, const char* const* argv) {
  CommandLine line;
  CLI::App app("aerie-load: puts a draft server under load and reports what a worker would see.",
               "aerie-load");
  app.footer(kLoadFooter);
  LoadFlags flags(&app);
  std::string csv, hdr;
  app.add_option("--csv", csv, "Write the timeline, a line a second")->group("Reports");
  app.add_option("--hdr", hdr, "Write an HdrHistogram log, two histograms a second")
      ->group("Reports");
  line.ending = ParseInto(app, argc, argv, [&] {
    AERIE_RETURN_IF_ERROR(flags.Read(&line.options));
    line.options.csv_path = csv;
    line.options.hdr_path = hdr;
    if (!PathsToStandardOutput(line.options).empty()) {
      return BadFlag("-", "given for several reports",
                     "only one can go to the terminal; write the others to files");
    }
    return line.options.Validate();
  });
  return line;
}

SweepLine ParseSweep(int argc, const char* const* argv) {
  SweepLine line;
  CLI::App app("aerie-load sweep: the same load at growing levels of one thing, to the knee.",
               "aerie-load sweep");
  app.footer(kSweepFooter);
  LoadFlags flags(&app);
  std::string over = "rate";
  SweepOptions& sweep = line.sweep;
  app.add_option("--over", over, "What grows: rate, sessions, k or rows (of the prompt)")
      ->check(CLI::IsMember({"rate", "sessions", "k", "rows"}))
      ->capture_default_str()
      ->group("Sweep");
  app.add_option("--values", sweep.values, "These levels, separated by commas, and no search")
      ->delimiter(',')
      ->group("Sweep");
  app.add_option("--from", sweep.from,
                 "First level of a search [default: 10 of rate, 8 of rows, else 1]")
      ->group("Sweep");
  app.add_option("--to", sweep.to,
                 "Last one [default: 100000 of rate, 256 of sessions, 8 of k, 1024 of rows]")
      ->group("Sweep");
  app.add_option("--refine", sweep.refine, "Times to look between the knee and its neighbours")
      ->capture_default_str()
      ->group("Sweep");
  line.ending = ParseInto(app, argc, argv, [&] {
    AERIE_RETURN_IF_ERROR(flags.Read(&line.options, over == "rate"));
    struct Kind {
      const char* name;
      SweepOver over;
      const char* flag;  // that says the level of a single run
      double from, to;
    };
    const Kind kinds[] = {{"rate", SweepOver::kRate, "--rate", 10, 100'000},
                          {"sessions", SweepOver::kSessions, "--sessions", 1, 256},
                          {"k", SweepOver::kK, "--k", 1, 8},
                          {"rows", SweepOver::kRows, "--prompt-rows", 8, 1024}};
    for (const Kind& kind : kinds) {
      if (over != kind.name) continue;
      sweep.over = kind.over;
      if (app.count("--from") == 0) sweep.from = kind.from;
      if (app.count("--to") == 0) sweep.to = kind.to;
      if (app.count(kind.flag) == 0) continue;
      return BadFlag(kind.flag, "given", "it contradicts --over, which varies it; leave it out");
    }
    LoadOptions& o = line.options;
    for (const char* flag : {"--tree", "--recording"}) {
      if (app.count(flag) == 0 || (over != "k" && over != "rows")) continue;
      return BadFlag(flag, "given",
                     absl::StrCat("it fixes what --over ", over, " varies; leave one out"));
    }
    for (const std::string& value : app.count("--values") > 0
                                        ? std::vector<std::string>{"--from", "--to", "--refine"}
                                        : std::vector<std::string>()) {
      if (app.count(value) == 0) continue;
      return BadFlag(value, "given", "it contradicts --values, which searches nothing; give one");
    }
    if (!o.requests.has_value() && !o.total_rounds.has_value()) {
      if (!o.duration.has_value()) o.duration = absl::Seconds(10);
      if (app.count("--warmup") == 0) o.warmup = std::min(absl::Seconds(2), *o.duration / 5);
    }
    AERIE_RETURN_IF_ERROR(sweep.Validate());
    return o.Validate();
  });
  return line;
}

CompareLine ParseCompare(int argc, const char* const* argv) {
  CompareLine line;
  CLI::App app("aerie-load compare: two JSON reports of runs, or of sweeps, side by side.",
               "aerie-load compare");
  app.footer(kCompareFooter);
  app.add_option("before", line.before, "JSON report to compare with")->required();
  app.add_option("after", line.after, "JSON report to be judged")->required();
  app.add_option("--tolerance", line.tolerance, "Share by which a figure may get worse")
      ->capture_default_str();
  app.add_flag("--json", line.json, "Print JSON in place of a table");
  line.ending = ParseInto(app, argc, argv, [&] {
    if (line.tolerance >= 0) return absl::OkStatus();
    return BadFlag("--tolerance", absl::StrCat(line.tolerance), "give 0 or more");
  });
  return line;
}

NullServerLine ParseNullServer(int argc, const char* const* argv) {
  NullServerLine line;
  CLI::App app(
      "aerie-load null-server: answers at once and drafts nothing, so that a load test of it "
      "measures the tester and gRPC. Runs until it is stopped.",
      "aerie-load null-server");
  app.add_option("--listen", line.listen, "host:port, port 0 for a free one, or unix:PATH")
      ->capture_default_str();
  app.add_option("--hidden-size", line.hidden_size, "Of the target it claims")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--captures", line.captures, "Captures a row")
      ->check(CLI::Range(1, 32))
      ->capture_default_str();
  app.add_option("--vocab-size", line.vocab_size, "Of the target")
      ->check(CLI::Range(256, 1 << 24))
      ->capture_default_str();
  app.add_option("--max-k", line.max_k, "Most tokens a draft")
      ->check(CLI::Range(1, 128))
      ->capture_default_str();
  app.add_option("--port-file", line.port_file, "Write the address here once it listens");
  line.ending = ParseInto(app, argc, argv, [] { return absl::OkStatus(); });
  return line;
}

}  // namespace aerie::loadtest
