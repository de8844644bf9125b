// How one request reaches the server and its answer comes back: as a unary call or on a stream.
//
// The stream's messages are the common form of both, since they can say every request.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "aerie/v1/draft.pb.h"
#include "client/call_metadata.h"

namespace aerie {

// Any thread.
class DraftTransport {
 public:
  virtual ~DraftTransport() = default;

  // Sends `request`, whose id no other open request has, and waits for its answer, at most until
  // `deadline`. An error answer is the returned Status, with its ErrorDetail attached. UNAVAILABLE
  // without a reason: the connection was lost, and the request may or may not have been served.
  // DEADLINE_EXCEEDED: likewise unknown. `metadata` goes along where the request is a call of its
  // own; a stream has some of its own, and an opening on it carries the trace in its message.
  virtual absl::StatusOr<v1::DraftStreamResponse> Exchange(
      std::shared_ptr<const v1::DraftStreamRequest> request, const CallMetadata& metadata,
      absl::Time deadline) = 0;
};

// DEADLINE_EXCEEDED, reason DEADLINE: what Exchange gives when no answer came in time.
absl::Status DeadlinePassed();

}  // namespace aerie
