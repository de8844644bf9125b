#include "server/request_log/request_log.h"

#include <atomic>
#include <latch>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/server/request_log/temporary_folder.h"

namespace aerie {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// Counts; the first record written waits until it may go on.
class CountingObserver : public RequestLogObserver {
 public:
  void OnRecordWritten() override {
    if (written++ == 0 && hold_first) {
      reached.count_down();
      go_on.wait();
    }
  }
  void OnRecordLost(RecordLoss loss) override {
    ++(loss == RecordLoss::kQueueFull ? queue_full : write_failed);
  }

  bool hold_first = false;
  std::atomic<int> written = 0, queue_full = 0, write_failed = 0;
  std::latch reached{1}, go_on{1};
};

SessionRecord Record(const std::string& id) {
  SessionRecord record;
  record.facts.id = id;
  return record;
}

std::unique_ptr<RequestLog> Open(const RequestLogOptions& options, RequestLogObserver* observer) {
  auto log = RequestLog::Open(options, observer);
  EXPECT_TRUE(log.ok()) << log.status();
  return *std::move(log);
}

// Tells it of a session's end.
void End(RequestLog* log, const std::string& id) {
  RecordOrigin origin;
  origin.drafter = "demo";
  log->ObserverOf(std::move(origin))->OnSessionEnded(Record(id));
}

TEST(RequestLogTest, HasALineForEachSessionWhenItIsGone) {
  const TemporaryFolder folder;
  CountingObserver observer;
  {
    const auto log = Open({.path = folder.File("log")}, &observer);
    for (int i = 0; i < 500; ++i) End(log.get(), std::to_string(i));
  }
  const std::vector<std::string> lines = ReadLines(folder.File("log"));
  ASSERT_THAT(lines, SizeIs(500));
  for (int i = 0; i < 500; ++i) {
    EXPECT_EQ(nlohmann::json::parse(lines[i])["session"].get<std::string>(), std::to_string(i));
  }
}

TEST(RequestLogTest, DropsAndCountsWhatTheDiskIsTooSlowFor) {
  const TemporaryFolder folder;
  CountingObserver observer;
  observer.hold_first = true;
  {
    const auto log = Open({.path = folder.File("log"), .queue_bytes = 1}, &observer);
    End(log.get(), "written");
    observer.reached.wait();
    End(log.get(), "waits");
    End(log.get(), "dropped");
    End(log.get(), "dropped");
    EXPECT_EQ(observer.queue_full, 2);
    observer.go_on.count_down();
  }
  EXPECT_THAT(ReadLines(folder.File("log")), SizeIs(2));
}

TEST(RequestLogTest, SurvivesAFullDiskAndCountsItsLosses) {
  CountingObserver observer;
  {
    const auto log = Open({.path = "/dev/full"}, &observer);
    for (int i = 0; i < 20; ++i) End(log.get(), std::to_string(i));
  }
  EXPECT_EQ(observer.write_failed, 20);
  EXPECT_EQ(observer.written, 0);
}

TEST(RequestLogTest, NamesAFileThatCannotBeWritten) {
  const TemporaryFolder folder;
  CountingObserver observer;
  const auto log = RequestLog::Open({.path = folder.File("no/log")}, &observer);
  EXPECT_EQ(log.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(log.status().message()), HasSubstr(folder.File("no/log")));
}

TEST(RequestLogTest, ALineSaysWhatTheRecordHolds) {
  SessionRecord record;
  record.end = SessionEnd::kLease;
  record.ended = absl::FromUnixMillis(1700000000123);
  record.active = absl::Seconds(2);
  record.facts = {.id = "ab12",
                  .client = "c \"1\"\n\xff",
                  .target_id = "t",
                  .traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                  .opened = absl::FromUnixSeconds(1699999990),
                  .tree = true,
                  .sampled = true};
  record.acceptance.Judge(4, 3, 2);
  record.acceptance.Judge(4, 4, 0);
  record.acceptance.KeepStep(4, 2);
  record.acceptance.KeepStep(4, 0);
  record.acceptance.completion_tokens = 5;
  record.acceptance.unreported_drafts = 1;
  record.cost = {.calls = 4,
                 .failed_calls = 1,
                 .rows = 12,
                 .bytes = 3456,
                 .copy_in = absl::Milliseconds(1),
                 .queue = absl::Milliseconds(2),
                 .extend = absl::Milliseconds(3),
                 .step = absl::Milliseconds(4),
                 .total = absl::Milliseconds(11)};
  const std::string text = ToJsonLine(record, {"demo", "0f3a"});
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(text), nlohmann::json::parse(R"({
    "time": "2023-11-14T22:13:20.123Z", "opened": "2023-11-14T22:13:10.000Z", "end": "lease",
    "engine": "aerie", "drafter": "demo", "version": "0f3a",
    "session": "ab12", "client": "c \"1\"\n\ufffd", "target": "t",
    "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "parent_id": "00f067aa0ba902b7",
    "kind": "tree", "sampled": true, "adaptive_k": false,
    "acceptance_histogram": {"0": 1, "2": 1}, "depth_histogram": {"3": 1, "4": 1},
    "num_accepted_draft_tokens": 2, "num_draft_tokens": 8, "num_spec_steps": 2,
    "num_spec_tokens": 4, "completion_tokens": 5, "unreported_drafts": 1,
    "mean_acceptance_length": 2.0, "draft_acceptance_rate": 0.25, "tokens_per_second": 2.5,
    "active_seconds": 2.0, "per_step_accepted": [2, 0], "per_step_drafted": [4, 4],
    "calls": 4, "failed_calls": 1, "rows": 12, "bytes": 3456,
    "phase_seconds": {"copy_in": 0.001, "queue": 0.002, "extend": 0.003, "step": 0.004,
                      "total": 0.011}})"));
}

TEST(RequestLogTest, WhatIsNotDefinedIsNull) {
  const auto line = nlohmann::json::parse(ToJsonLine(SessionRecord(), {}));
  for (const char* name : {"mean_acceptance_length", "draft_acceptance_rate", "tokens_per_second",
                           "trace_id", "parent_id"}) {
    ASSERT_TRUE(line.contains(name)) << name;
    EXPECT_TRUE(line[name].is_null()) << name;
  }
  EXPECT_FALSE(line.contains("per_step_accepted"));
}

TEST(RequestLogTest, RefusesSizesThatNoLogCanHave) {
  EXPECT_TRUE(RequestLogOptions().Validate().ok());
  EXPECT_THAT(std::string(RequestLogOptions{.max_bytes = 1000}.Validate().message()),
              HasSubstr("--request-log-size is 1000; expected"));
  EXPECT_THAT(std::string(RequestLogOptions{.max_files = 0}.Validate().message()),
              HasSubstr("--request-log-files is 0; expected"));
}

}  // namespace
}  // namespace aerie
