// Many sessions on one stream: the fast path. Answers are matched to requests by id.
//
// Sessions opened here end with the stream. When it breaks, every waiting call fails with
// UNAVAILABLE, the next call starts a new stream, and the server answers it with SESSION_UNKNOWN:
// reopen and send the rows again.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/connection.h"
#include "client/draft_transport.h"

namespace aerie {

class ClientStream;

class StreamTransport : public DraftTransport {
 public:
  // `connection` must outlive this. A proxy cannot part one stream, so all its requests go by
  // `key`, and so does the stream after a broken one.
  StreamTransport(Connection* connection, std::string key)
      : connection_(connection), key_(std::move(key)) {}
  // Half-closes the stream and waits for its end, but not for long. No call may be open.
  ~StreamTransport() override;

  absl::StatusOr<v1::DraftStreamResponse> Exchange(
      std::shared_ptr<const v1::DraftStreamRequest> request, const CallMetadata& metadata,
      absl::Time deadline) override;

 private:
  std::shared_ptr<ClientStream> Current();

  Connection* const connection_;
  const std::string key_;
  absl::Mutex mutex_;
  std::shared_ptr<ClientStream> stream_ ABSL_GUARDED_BY(mutex_);
  // Broken, but gRPC may not have let go of them yet.
  std::vector<std::shared_ptr<ClientStream>> retired_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace aerie
