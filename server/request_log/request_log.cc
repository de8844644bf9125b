#include "server/request_log/request_log.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/check.h"
#include "common/log.h"

namespace aerie {
namespace {

constexpr int64_t kLeastFileBytes = int64_t{1} << 20;
constexpr int64_t kMostFileBytes = int64_t{1} << 40;
constexpr int32_t kMostFiles = 1000;

// Roughly what a record takes while it waits.
int64_t BytesOf(const SessionRecord& record) {
  const AcceptanceRecord& acceptance = record.acceptance;
  const SessionFacts& facts = record.facts;
  const size_t histograms =
      acceptance.acceptance_histogram.size() + acceptance.depth_histogram.size();
  const size_t steps = acceptance.per_step_accepted.size() + acceptance.per_step_drafted.size();
  const size_t texts =
      facts.id.size() + facts.client.size() + facts.target_id.size() + facts.traceparent.size();
  return static_cast<int64_t>(sizeof(record) + histograms * sizeof(int64_t) +
                              steps * sizeof(int32_t) + texts);
}

}  // namespace

// Only the ends of sessions are of interest here.
class RequestLog::Sessions final : public RoundObserver {
 public:
  Sessions(RequestLog* log, RecordOrigin origin)
      : log_(log), origin_(std::make_shared<const RecordOrigin>(std::move(origin))) {}

  void OnSessionEnded(const SessionRecord& record) override { log_->Add({record, origin_}); }

  void OnRound(const RoundRecord&) override {}
  void OnPass(const PassRecord&) override {}
  void OnSessionOpened() override {}
  void OnRejected(RejectReason) override {}
  void OnReplyEncoded(absl::Duration) override {}
  void OnLoad(int32_t, int32_t) override {}
  void OnKvUsage(const KvUsage&) override {}
  void OnEvicted(int64_t) override {}

 private:
  RequestLog* const log_;
  const std::shared_ptr<const RecordOrigin> origin_;
};

absl::Status RequestLogOptions::Validate() const {
  if (max_bytes < kLeastFileBytes || max_bytes > kMostFileBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("--request-log-size is ", max_bytes, "; expected ", kLeastFileBytes, "..",
                     kMostFileBytes, " bytes; give what one file may take, such as 64MiB"));
  }
  if (max_files < 1 || max_files > kMostFiles) {
    return absl::InvalidArgumentError(
        absl::StrCat("--request-log-files is ", max_files, "; expected 1..", kMostFiles,
                     "; give how many files are kept, the one that is written included"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<RequestLog>> RequestLog::Open(const RequestLogOptions& options,
                                                             RequestLogObserver* observer) {
  absl::StatusOr<std::unique_ptr<RecordFile>> file =
      RecordFile::Open(options.path, options.max_bytes, options.max_files);
  if (!file.ok()) {
    return absl::UnavailableError(absl::StrCat(
        "the request log \"", options.path, "\" cannot be written: ", file.status().message(),
        "; expected a file in a folder that is there and ours; mend the folder, or "
        "give another --request-log"));
  }
  return std::unique_ptr<RequestLog>(new RequestLog(options, *std::move(file), observer));
}

RequestLog::RequestLog(const RequestLogOptions& options, std::unique_ptr<RecordFile> file,
                       RequestLogObserver* observer)
    : options_(options), observer_(observer), file_(std::move(file)), thread_([this] { Run(); }) {
  AERIE_CHECK(observer_ != nullptr);
}

RequestLog::~RequestLog() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

std::unique_ptr<RoundObserver> RequestLog::ObserverOf(RecordOrigin origin) {
  return std::make_unique<Sessions>(this, std::move(origin));
}

void RequestLog::Add(Entry entry) {
  const int64_t bytes = BytesOf(entry.record);
  {
    MutexLock lock(&mutex_);
    // One fits always, however large.
    if (queue_.empty() || queued_bytes_ + bytes <= options_.queue_bytes) {
      queue_.push_back(std::move(entry));
      queued_bytes_ += bytes;
      changed_.NotifyAll();
      return;
    }
  }
  observer_->OnRecordLost(RecordLoss::kQueueFull);
}

void RequestLog::Run() {
  while (true) {
    std::deque<Entry> records;
    bool stopping = false;
    {
      MutexLock lock(&mutex_);
      changed_.WaitUntil(&mutex_, absl::InfiniteFuture(), [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
        return !queue_.empty() || stopping_;
      });
      records.swap(queue_);
      queued_bytes_ = 0;
      stopping = stopping_;
    }
    for (const Entry& entry : records) Write(entry);
    if (stopping) return;
  }
}

void RequestLog::Write(const Entry& entry) {
  const absl::Status written = file_->Write(ToJsonLine(entry.record, *entry.origin), absl::Now());
  if (written.ok()) {
    observer_->OnRecordWritten();
    if (missing_ > 0) {
      AERIE_LOG(info, "the request log \"{}\" is written again; {} records are missing",
                options_.path, missing_);
    }
    missing_ = 0;
    return;
  }
  // Once, not for each record: a full disk must not fill the log as well.
  if (missing_ == 0) {
    AERIE_LOG(error,
              "the request log \"{}\" cannot be written: {}; expected room on the disk and a file "
              "that is ours; drafting goes on, records are dropped and counted until it can",
              options_.path, std::string(written.message()));
  }
  ++missing_;
  observer_->OnRecordLost(RecordLoss::kWriteFailed);
}

}  // namespace aerie
