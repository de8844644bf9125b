// Many sessions on one stream: the fast path. Answers are matched to requests by id.
//
// Sessions opened here end with the stream. When it breaks, every waiting call fails with
// UNAVAILABLE, the next call starts a new stream, and the server answers it with SESSION_UNKNOWN:
// reopen and send the rows again.
#pragma once

#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/connection.h"
#include "client/draft_transport.h"

namespace aerie {

class ClientStream;

class StreamTransport : public DraftTransport {
 public:
  // `connection` must outlive this.
  explicit StreamTransport(Connection* connection) : connection_(connection) {}
  // Half-closes the stream and waits for its end, but not for long. No call may be open.
  ~StreamTransport() override;

  absl::StatusOr<v1::DraftStreamResponse> Exchange(
      std::shared_ptr<const v1::DraftStreamRequest> request, const std::string& traceparent,
      absl::Time deadline) override;

 private:
  std::shared_ptr<ClientStream> Current();

  Connection* const connection_;
  absl::Mutex mutex_;
  std::shared_ptr<ClientStream> stream_ ABSL_GUARDED_BY(mutex_);
  // Broken, but gRPC may not have let go of them yet.
  std::vector<std::shared_ptr<ClientStream>> retired_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace aerie
