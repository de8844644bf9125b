#include "client/unary_transport.h"

#include "common/check.h"
#include "common/error_detail.h"
#include "common/rpc/status_codec.h"

namespace aerie {

absl::StatusOr<v1::DraftStreamResponse> UnaryTransport::Exchange(
    std::shared_ptr<const v1::DraftStreamRequest> request, const CallMetadata& metadata,
    absl::Time deadline) {
  grpc::ClientContext context;
  metadata.AddTo(&context);
  context.set_deadline(absl::ToChronoTime(deadline));
  v1::DraftService::Stub& stub = connection_->stub();
  v1::DraftStreamResponse response;
  response.set_id(request->id());
  grpc::Status status;
  switch (request->request_case()) {
    case v1::DraftStreamRequest::kOpenSession:
      status = stub.OpenSession(&context, request->open_session(), response.mutable_open_session());
      break;
    case v1::DraftStreamRequest::kDraft:
      status = stub.Draft(&context, request->draft(), response.mutable_draft());
      break;
    case v1::DraftStreamRequest::kCloseSession:
      status =
          stub.CloseSession(&context, request->close_session(), response.mutable_close_session());
      break;
    case v1::DraftStreamRequest::kBatch:
    case v1::DraftStreamRequest::REQUEST_NOT_SET:
      AERIE_CHECK(false) << "a request must say which one thing it asks for";
  }
  if (status.ok()) return response;
  absl::Status failure = rpc::FromGrpcStatus(status);
  // gRPC's own word, not the server's.
  if (absl::IsDeadlineExceeded(failure) && DetailOf(failure).reason.empty()) {
    return DeadlinePassed();
  }
  return failure;
}

}  // namespace aerie
