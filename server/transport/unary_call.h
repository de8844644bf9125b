// One unary call from arrival to reply. Made with new; deletes itself when gRPC is done with it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "google/protobuf/message.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/engine/cancel_flag.h"
#include "server/transport/access_control.h"
#include "server/transport/rpc_record.h"
#include "server/transport/service_backend.h"

namespace aerie {

class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  // What is said of a call in log and metrics. The session's id is part of the request.
  struct About {
    std::string_view method;  // static text
    std::optional<CallKind> kind = std::nullopt;
    const std::string* session = nullptr;
  };
  // `backend` may be null: the drafter is loading.
  UnaryCall(const ServiceBackend* backend, const grpc::CallbackServerContext& context, About about,
            const google::protobuf::Message& request);

  absl::Time arrival() const { return record_.arrival(); }
  const std::shared_ptr<CancelFlag>& cancel() const { return cancel_; }
  // The traceparent of its metadata; empty: none that can be read.
  const std::string& traceparent() const { return traceparent_; }

  // Whether the call may be handed on; otherwise the reply has been given. `access` may be null:
  // everybody may call.
  bool Admit(const AccessControl* access, const ServiceLimits& limits);
  // Counts an admitted call, and the rows that it brings, for its client. `shared_bytes`: of these
  // rows, beside the message. False: it comes too early, and the reply has been given; `drafter` is
  // whose call it would have been.
  bool TakeShare(const ServiceLimits& limits, int64_t rows, int64_t shared_bytes,
                 const ServedDrafter& drafter);
  // Who it was admitted as; empty: nobody was asked.
  const std::string& caller() const { return caller_; }

  // Exactly one of these, once; the call may be gone when it returns.
  void Succeed(const google::protobuf::Message& response);
  void Fail(const absl::Status& status);
  // The request itself is at fault: no engine has seen it. `drafter`: whose it would have been.
  void Reject(const absl::Status& status, const ServedDrafter& drafter);

  void OnCancel() override { cancel_->Set(); }
  void OnDone() override { delete this; }

 private:
  // Tells log and metrics what the call is answered with.
  void Tell(const absl::Status& status);

  const ServiceBackend* const backend_;
  const grpc::CallbackServerContext& context_;
  const About about_;
  RpcRecord record_;
  const int64_t request_bytes_;
  const std::string traceparent_;
  std::string caller_;
  ClientLimits::Stay stay_;
  const std::shared_ptr<CancelFlag> cancel_;
};

// The client's deadline; the infinite future when it gave none.
absl::Time DeadlineOf(const grpc::CallbackServerContext& context);

}  // namespace aerie
