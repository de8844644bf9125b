#include "server/transport/unary_call.h"

#include <chrono>
#include <utility>

#include "common/rpc/status_codec.h"
#include "server/transport/call_trace.h"
#include "server/transport/draft_messages.h"

namespace aerie {

namespace {

RpcObserver* ObserverOf(const ServiceBackend* backend) {
  return backend == nullptr ? nullptr : backend->rpc_observer;
}

// gRPC tells a reactor of a cancel only once the method has returned; a call that is computed on
// the thread that read it (ThreadLoan) is answered before.
class CallCancelFlag final : public CancelFlag {
 public:
  explicit CallCancelFlag(const grpc::CallbackServerContext& context) : context_(context) {}
  bool IsSet() const override { return CancelFlag::IsSet() || context_.IsCancelled(); }

 private:
  const grpc::CallbackServerContext& context_;  // gRPC's, until the call is answered
};

}  // namespace

UnaryCall::UnaryCall(const ServiceBackend* backend, const grpc::CallbackServerContext& context,
                     About about, const google::protobuf::Message& request)
    : backend_(backend),
      context_(context),
      about_(about),
      record_(ObserverOf(backend), {RpcType::kUnary, kDraftServiceName, about.method}),
      request_bytes_(static_cast<int64_t>(request.ByteSizeLong())),
      traceparent_(TraceOf(context, ObserverOf(backend))),
      cancel_(std::make_shared<CallCancelFlag>(context)) {
  record_.Received(request_bytes_);
}

bool UnaryCall::Admit(const AccessControl* access, const ServiceLimits& limits) {
  // First: a stranger is told nothing of how the server is.
  if (access != nullptr) {
    absl::StatusOr<std::string> caller = access->Admit(context_, Role::kDraft);
    if (!caller.ok()) {
      Fail(caller.status());
      return false;
    }
    caller_ = *std::move(caller);
  }
  if (backend_ == nullptr) {
    Fail(StillLoading());
    return false;
  }
  if (absl::Status size = CheckMessageSize(request_bytes_, limits.max_message_bytes); !size.ok()) {
    Reject(size, *backend_->drafters->First());
    return false;
  }
  return true;
}

bool UnaryCall::TakeShare(const ServiceLimits& limits, int64_t rows, int64_t shared_bytes,
                          const ServedDrafter& drafter) {
  if (limits.clients == nullptr) return true;
  RejectReason reason = RejectReason::kClientRows;
  absl::StatusOr<ClientLimits::Stay> stay = limits.clients->Admit(
      AccountOf(caller_, context_.peer()), request_bytes_ + shared_bytes, rows, &reason);
  if (!stay.ok()) {
    if (drafter.round_observer != nullptr) drafter.round_observer->OnRejected(reason);
    Fail(stay.status());
    return false;
  }
  stay_ = *std::move(stay);
  return true;
}

void UnaryCall::Tell(const absl::Status& status) {
  // First: whoever is answered may call again at once.
  stay_.Leave();
  static const std::string kNone;
  LogAnswer(about_.method, status, about_.session == nullptr ? kNone : *about_.session,
            traceparent_);
  if (about_.kind.has_value() && backend_ != nullptr && backend_->rpc_observer != nullptr) {
    backend_->rpc_observer->OnAnswered(*about_.kind, RpcType::kUnary, status.code());
  }
  record_.Handled(status.code());
}

void UnaryCall::Succeed(const google::protobuf::Message& response) {
  record_.Sent(static_cast<int64_t>(response.ByteSizeLong()));
  Tell(absl::OkStatus());
  Finish(grpc::Status::OK);
}

void UnaryCall::Fail(const absl::Status& status) {
  Tell(status);
  Finish(rpc::ToGrpcStatus(status));
}

void UnaryCall::Reject(const absl::Status& status, const ServedDrafter& drafter) {
  if (drafter.round_observer != nullptr) {
    drafter.round_observer->OnRejected(RejectReason::kShape);
  }
  Fail(status);
}

absl::Time DeadlineOf(const grpc::CallbackServerContext& context) {
  const std::chrono::system_clock::time_point deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return absl::InfiniteFuture();
  return absl::FromChrono(deadline);
}

}  // namespace aerie
