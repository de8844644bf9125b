// One DraftStream call from its start to its end.
//
// gRPC runs the On... functions on its own threads. Writes go out one at a time in the order of the
// calls; a caller whose deadline passes leaves, and its late answer is dropped.
//
// Must be destroyed on a thread of ours: it holds a reference to the channel, and a channel that
// ends on one of gRPC's callback threads takes that very thread down with it. So the stream does
// not keep itself alive.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "aerie/v1/draft.grpc.pb.h"

namespace aerie {

class ClientStream
    : public grpc::ClientBidiReactor<v1::DraftStreamRequest, v1::DraftStreamResponse> {
 public:
  // Starts the call, with `key` as its metadata (client/session_key.h).
  ClientStream(v1::DraftService::Stub& stub, const std::string& key);
  // gRPC must be done with it: IsDone() was true, or Finish() returned.
  ~ClientStream() override;

  // Any thread. As DraftTransport::Exchange.
  absl::StatusOr<v1::DraftStreamResponse> Exchange(
      std::shared_ptr<const v1::DraftStreamRequest> request, absl::Time deadline);

  // True once the stream takes no more requests.
  bool IsBroken();
  // True once gRPC has let go of it.
  bool IsDone();

  // Half-closes, waits until `deadline` for the server to end the stream, then cancels it and waits
  // for the end.
  void Finish(absl::Time deadline);

 private:
  // What one caller waits for; lives on its stack.
  struct Waiter {
    std::optional<absl::StatusOr<v1::DraftStreamResponse>> answer;
  };

  void OnWriteDone(bool ok) override;
  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  // The next request, or the half-close behind the last one.
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // No write may start from here on; gRPC may end the call.
  void StopWriting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  grpc::ClientContext context_;
  v1::DraftStreamResponse incoming_;

  absl::Mutex mutex_;
  // The front is being written while `writing_`.
  std::deque<std::shared_ptr<const v1::DraftStreamRequest>> outgoing_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, Waiter*> waiters_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;
  bool half_closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace aerie
