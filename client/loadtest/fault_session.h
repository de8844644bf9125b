// One session that misbehaves, spoken without the client library, which would not let it.
//
// Its rows are the first ones of a sequence of the workload. Every call that drafts builds on row
// 0, so it replaces what a call before it may or may not have committed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/loadtest/options.h"
#include "client/loadtest/stats.h"
#include "client/loadtest/workload.h"

namespace aerie::loadtest {

// One thread.
class FaultSession {
 public:
  FaultSession(const LoadOptions& options, const Workload& workload, int64_t number);
  ~FaultSession();
  FaultSession(const FaultSession&) = delete;
  FaultSession& operator=(const FaultSession&) = delete;

  absl::Status Open();
  absl::Status Draft(absl::Duration deadline);
  absl::Status Draft();  // with the deadline of the run
  absl::Status Close();

  absl::Status DraftAndCancel();
  absl::Status DraftWithMissingBytes();
  absl::Status DraftWithForeignToken();
  // Bytes that are no message, as a Draft call.
  absl::Status SendGarbage();
  // A stream of its own: opens a session on it, sends kUnread drafts, and reads then. The first
  // answer that is an error, or how the stream ended.
  absl::Status StreamWithoutReading();
  // The next call makes a new connection.
  void DropConnection();

  // What the server may have counted of all this.
  const UnsureCounts& counts() const { return counts_; }

  static constexpr int kUnread = 32;

 private:
  struct Wire;
  void CountCall();

  const LoadOptions& options_;
  const int32_t vocab_size_;
  std::unique_ptr<Wire> wire_;
  UnsureCounts counts_;
};

}  // namespace aerie::loadtest
