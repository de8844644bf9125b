// The sums over all records of the request log equal the exported counters, to the unit, however
// sessions ended.
#include <map>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "server/engine/round_observer_list.h"
#include "server/metrics/metric_page.h"
#include "server/metrics/prometheus_observer.h"
#include "server/metrics/server_metrics.h"
#include "server/request_log/request_log.h"
#include "tests/server/engine/core_driver.h"
#include "tests/server/metrics/exposition.h"
#include "tests/server/request_log/temporary_folder.h"

namespace aerie {
namespace {

constexpr int32_t kMaxK = 5;

// Plays one session of a worker whose target keeps what `random` says, and leaves it open.
std::string PlaySession(CoreDriver* driver, std::mt19937* random, int number) {
  const auto pick = [random](int32_t low, int32_t high) {
    return std::uniform_int_distribution<int32_t>(low, high)(*random);
  };
  SessionOptions options;
  options.client = number % 2 == 0 ? "even" : "odd";
  options.acceptance_detail = number % 3 == 0;
  options.adaptive_k = number % 5 == 0;
  const std::string id = driver->OpenSession(options);
  std::vector<int32_t> next = {pick(0, 100), pick(0, 100), pick(0, 100)};
  int64_t length = 0;
  for (int round = pick(0, 9); round >= 0; --round) {
    const auto result = driver->Run(MakeDraftCall(id, length, next, pick(0, kMaxK)));
    EXPECT_TRUE(result.ok()) << result.status();
    length += static_cast<int64_t>(next.size());
    if (pick(0, 7) == 0 && length > 1) {
      length -= 1;  // goes back by a row: what was proposed is lost if the token differs
      next = {pick(0, 100)};
      continue;
    }
    const auto& tokens = result->tree.tokens;
    const auto kept = pick(0, static_cast<int32_t>(tokens.size()));
    next.assign(tokens.begin(), tokens.begin() + kept);
    next.push_back(pick(0, 100));
    // A refused call belongs to the session's calls as well.
    if (pick(0, 5) == 0) {
      EXPECT_FALSE(driver->Run(MakeDraftCall(id, length + 9, {1}, 1)).ok());
    }
  }
  return id;
}

// Sums a number, and the numbers of an object by their keys, over lines.
double SumOf(const std::vector<nlohmann::json>& lines, const std::string& name) {
  double sum = 0;
  for (const auto& line : lines) sum += line.at(name).get<double>();
  return sum;
}

std::map<int, int64_t> Histogram(const std::vector<nlohmann::json>& lines,
                                 const std::string& name) {
  std::map<int, int64_t> sums;
  for (const auto& line : lines) {
    for (const auto& [key, count] : line.at(name).items()) {
      sums[std::stoi(key)] += count.get<int64_t>();
    }
  }
  return sums;
}

int64_t From(const std::map<int, int64_t>& histogram, int first) {
  int64_t sum = 0;
  for (auto it = histogram.lower_bound(first); it != histogram.end(); ++it) sum += it->second;
  return sum;
}

TEST(RequestLogSumsTest, EqualTheCountersToTheUnit) {
  std::mt19937 random(20260201);
  CoreDriver driver({.max_k = kMaxK, .session_lease = absl::Minutes(1)});
  constexpr int kSessions = 120;
  for (int i = 0; i < kSessions; ++i) {
    const std::string id = PlaySession(&driver, &random, i);
    if (i % 4 == 0) {
      EXPECT_TRUE(driver.RunClose(id, {7, 8}).ok());
    } else if (i % 4 == 1) {
      driver.Close(id, {}, SessionEnd::kStreamClosed);
    } else if (i % 4 == 2) {
      driver.now += absl::Minutes(2);
      driver.core.ExpireLeases(driver.now);
    }
    // The fourth is left to a lease, or to the end of the server.
  }
  driver.core.Shutdown(driver.now);

  const TemporaryFolder folder;
  PrometheusObserver metrics({.max_k = kMaxK});
  ServerMetrics server_metrics({});
  {
    const auto log = RequestLog::Open({.path = folder.File("log")}, &server_metrics);
    ASSERT_TRUE(log.ok()) << log.status();
    const std::unique_ptr<RoundObserver> sessions = (*log)->ObserverOf({"d", "v"});
    RoundObserverList all({&metrics, sessions.get()});
    for (const RoundRecord& round : driver.observer.rounds()) all.OnRound(round);
    for (const SessionRecord& session : driver.observer.ended()) all.OnSessionEnded(session);
  }
  std::vector<nlohmann::json> lines;
  for (const std::string& line : ReadLines(folder.File("log"))) {
    lines.push_back(nlohmann::json::parse(line));
  }
  ASSERT_EQ(lines.size(), static_cast<size_t>(kSessions));
  MetricPage page(server_metrics.metrics());
  page.Add("d", metrics.metrics());
  const Exposition scrape(page);
  const auto counter = [&scrape](const std::string& name, const Labels& labels = {}) {
    return scrape.Sum("aerie_" + name, labels);
  };

  EXPECT_EQ(counter("spec_decode_num_drafts_total"), SumOf(lines, "num_spec_steps"));
  EXPECT_EQ(counter("spec_decode_num_draft_tokens_total"), SumOf(lines, "num_draft_tokens"));
  EXPECT_EQ(counter("spec_decode_num_accepted_tokens_total"),
            SumOf(lines, "num_accepted_draft_tokens"));
  EXPECT_EQ(counter("committed_tokens_total"), SumOf(lines, "completion_tokens"));
  EXPECT_EQ(counter("drafts_unreported_total"), SumOf(lines, "unreported_drafts"));
  EXPECT_EQ(counter("hidden_rows_total"), SumOf(lines, "rows"));
  EXPECT_EQ(counter("hidden_bytes_total"), SumOf(lines, "bytes"));
  EXPECT_EQ(counter("draft_duration_seconds_count", {{"phase", "total"}}),
            SumOf(lines, "calls") - SumOf(lines, "failed_calls"));
  const auto accepted = Histogram(lines, "acceptance_histogram");
  const auto depths = Histogram(lines, "depth_histogram");
  for (int i = 0; i < kMaxK; ++i) {
    const Labels position = {{"position", std::to_string(i)}};
    EXPECT_EQ(counter("spec_decode_num_accepted_tokens_per_pos_total", position),
              From(accepted, i + 1));
    EXPECT_EQ(counter("spec_decode_num_draft_tokens_per_pos_total", position), From(depths, i + 1));
  }
  std::map<std::string, int> ends;
  for (const auto& line : lines) ++ends[line.at("end").get<std::string>()];
  EXPECT_EQ(ends.size(), 4u);
  for (const auto& [end, count] : ends) {
    EXPECT_EQ(counter("sessions_ended_total", {{"reason", end}}), count) << end;
  }
  // Nothing of this is trivially true.
  EXPECT_GT(SumOf(lines, "num_accepted_draft_tokens"), 100);
  EXPECT_GT(SumOf(lines, "unreported_drafts"), 10);
  EXPECT_GT(SumOf(lines, "failed_calls"), 10);
}

TEST(RequestLogSumsTest, StepsOfADetailedRecordAddUpToItsTotals) {
  std::mt19937 random(7);
  CoreDriver driver({.max_k = kMaxK});
  int detailed = 0;
  for (int i = 0; i < 30; ++i) {
    const auto record = driver.RunClose(PlaySession(&driver, &random, i), {1});
    ASSERT_TRUE(record.ok()) << record.status();
    if (i % 3 != 0) {
      EXPECT_TRUE(record->per_step_accepted.empty());
      continue;
    }
    EXPECT_EQ(record->per_step_accepted.size(), static_cast<size_t>(record->spec_steps));
    EXPECT_EQ(record->per_step_drafted.size(), static_cast<size_t>(record->spec_steps));
    int64_t accepted = 0, drafted = 0;
    for (const int32_t count : record->per_step_accepted) accepted += count;
    for (const int32_t count : record->per_step_drafted) drafted += count;
    EXPECT_EQ(accepted, record->accepted_draft_tokens);
    EXPECT_EQ(drafted, record->draft_tokens);
    detailed += record->spec_steps > 0 ? 1 : 0;
  }
  EXPECT_GT(detailed, 5);
}

}  // namespace
}  // namespace aerie
