// Every request as a call of its own. Sessions outlive the connection.
#pragma once

#include <memory>

#include "client/connection.h"
#include "client/draft_transport.h"

namespace aerie {

class UnaryTransport : public DraftTransport {
 public:
  // `connection` must outlive this.
  explicit UnaryTransport(Connection* connection) : connection_(connection) {}

  absl::StatusOr<v1::DraftStreamResponse> Exchange(
      std::shared_ptr<const v1::DraftStreamRequest> request, const CallMetadata& metadata,
      absl::Time deadline) override;

 private:
  Connection* const connection_;
};

}  // namespace aerie
