#include "server/transport/unary_call.h"

#include <chrono>

#include "common/rpc/status_codec.h"
#include "server/transport/draft_messages.h"

namespace aerie {

UnaryCall::UnaryCall(const ServiceBackend* backend, std::string_view method,
                     const google::protobuf::Message& request)
    : backend_(backend),
      record_(backend == nullptr ? nullptr : backend->rpc_observer,
              {RpcType::kUnary, kDraftServiceName, method}),
      request_bytes_(static_cast<int64_t>(request.ByteSizeLong())) {
  record_.Received(request_bytes_);
}

bool UnaryCall::Admit(const ServiceLimits& limits) {
  if (backend_ == nullptr) {
    Fail(StillLoading());
    return false;
  }
  if (absl::Status size = CheckMessageSize(request_bytes_, limits.max_message_bytes); !size.ok()) {
    Reject(size);
    return false;
  }
  return true;
}

void UnaryCall::Succeed(const google::protobuf::Message& response) {
  record_.Sent(static_cast<int64_t>(response.ByteSizeLong()));
  record_.Handled(absl::StatusCode::kOk);
  Finish(grpc::Status::OK);
}

void UnaryCall::Fail(const absl::Status& status) {
  record_.Handled(status.code());
  Finish(rpc::ToGrpcStatus(status));
}

void UnaryCall::Reject(const absl::Status& status) {
  if (backend_->round_observer != nullptr) {
    backend_->round_observer->OnRejected(RejectReason::kShape);
  }
  Fail(status);
}

absl::Time DeadlineOf(const grpc::CallbackServerContext& context) {
  const std::chrono::system_clock::time_point deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return absl::InfiniteFuture();
  return absl::FromChrono(deadline);
}

}  // namespace aerie
