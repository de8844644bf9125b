// Runs Prometheus' own linter over the page. Skipped without the program, unless
// AERIE_REQUIRE_PROMTOOL=1.
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "gtest/gtest.h"
#include "server/metrics/prometheus_observer.h"
#include "tests/server/metrics/exposition.h"

namespace aerie {
namespace {

struct Outcome {
  int status = -1;
  std::string output;
};

// Feeds `text` to a shell command. Only for input and output that fit a pipe's buffer one after the
// other: the linter reads everything before it writes.
Outcome Pipe(const std::string& command, const std::string& text) {
  const std::string report = testing::TempDir() + "promtool_report";
  FILE* pipe = popen((command + " > '" + report + "' 2>&1").c_str(), "w");
  if (pipe == nullptr) return {};
  fwrite(text.data(), 1, text.size(), pipe);
  Outcome outcome;
  outcome.status = pclose(pipe);
  if (FILE* file = fopen(report.c_str(), "r")) {
    std::array<char, 4096> buffer{};
    outcome.output.assign(buffer.data(), fread(buffer.data(), 1, buffer.size(), file));
    fclose(file);
  }
  std::remove(report.c_str());
  return outcome;
}

class PromtoolTest : public testing::Test {
 protected:
  void SetUp() override {
    // A linter that gives up amid the page must fail the test, not end the program.
    std::signal(SIGPIPE, SIG_IGN);
    if (std::system("command -v promtool > /dev/null") == 0) return;
    const char* required = std::getenv("AERIE_REQUIRE_PROMTOOL");
    if (required != nullptr && std::string(required) == "1") {
      FAIL() << "promtool is not installed, and AERIE_REQUIRE_PROMTOOL=1; install Debian's "
                "prometheus";
    }
    GTEST_SKIP() << "promtool is not installed; Debian's package prometheus has it";
  }
};

TEST_F(PromtoolTest, FindsNothingToComplainAbout) {
  PrometheusObserver observer({.labels = {.drafter = "demo", .version = "1", .target = "t \"\\ x"},
                               .wiring = {.mode = "alert",
                                          .captures = 1,
                                          .expected_rms = {2.5},
                                          .expected_accept_length = 1.5},
                               .max_k = 128});
  observer.OnRound({.judgement = Judgement{.proposed = 4, .depth = 4, .accepted = 2}});
  const Outcome lint = Pipe("promtool check metrics", Exposition(*observer.metrics()).text());
  EXPECT_EQ(lint.status, 0);
  EXPECT_EQ(lint.output, "");
}

TEST_F(PromtoolTest, ComplainsAboutAPageThatBreaksTheRules) {
  const Outcome lint = Pipe("promtool check metrics",
                            "# HELP aerie_wait_milliseconds Waiting.\n"
                            "# TYPE aerie_wait_milliseconds gauge\n"
                            "aerie_wait_milliseconds 1\n");
  EXPECT_NE(lint.status, 0);
  EXPECT_NE(lint.output, "");
}

}  // namespace
}  // namespace aerie
