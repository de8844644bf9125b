// The request log: one JSON line for each session, written when it ends for whatever reason.
//
// Written on a thread of its own from a bounded queue: a slow or full disk costs records, which are
// counted, and never a draft.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "server/engine/round_observer.h"
#include "server/request_log/record_file.h"
#include "server/request_log/record_json.h"
#include "server/request_log/request_log_observer.h"

namespace aerie {

struct RequestLogOptions {
  std::string path;                         // empty: no request log
  int64_t max_bytes = int64_t{64} << 20;    // of one file; 1 MiB..1 TiB
  int32_t max_files = 5;                    // the one that is written included; 1..1000
  int64_t queue_bytes = int64_t{16} << 20;  // of records that wait for the disk; > 0

  // INVALID_ARGUMENT that names the flag and the value.
  absl::Status Validate() const;
};

class RequestLog {
 public:
  // `options` must be valid and name a path; `observer` must outlive the log. UNAVAILABLE: the file
  // cannot be opened.
  static absl::StatusOr<std::unique_ptr<RequestLog>> Open(const RequestLogOptions& options,
                                                          RequestLogObserver* observer);
  // Writes what waits, then stops.
  ~RequestLog();

  // What is to be told of the sessions of one drafter. The log must outlive it.
  std::unique_ptr<RoundObserver> ObserverOf(RecordOrigin origin);

 private:
  class Sessions;
  struct Entry {
    SessionRecord record;
    std::shared_ptr<const RecordOrigin> origin;
  };

  RequestLog(const RequestLogOptions& options, std::unique_ptr<RecordFile> file,
             RequestLogObserver* observer);
  void Add(Entry entry);
  void Run();
  void Write(const Entry& entry);

  const RequestLogOptions options_;
  RequestLogObserver* const observer_;

  Mutex mutex_;
  Condition changed_;
  std::deque<Entry> queue_ ABSL_GUARDED_BY(mutex_);
  int64_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  // The writer's.
  const std::unique_ptr<RecordFile> file_;
  int64_t missing_ = 0;  // records lost since the disk last took one

  std::thread thread_;  // last: everything above must be there when it starts
};

}  // namespace aerie
