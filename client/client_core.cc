#include "client/client_core.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/stream_transport.h"
#include "client/unary_transport.h"
#include "common/error_detail.h"
#include "common/rpc/status_codec.h"
#include "common/status_macros.h"

namespace aerie {
namespace {

constexpr uint32_t kProtocolVersion = 1;

std::unique_ptr<DraftTransport> MakeTransport(TransportKind kind, Connection* connection) {
  if (kind == TransportKind::kStream) return std::make_unique<StreamTransport>(connection);
  return std::make_unique<UnaryTransport>(connection);
}

}  // namespace

ClientCore::ClientCore(std::string address, const ClientOptions& options)
    : options_(options),
      connection_(std::move(address), options),
      transport_(MakeTransport(options.transport, &connection_)) {}

absl::Time ClientCore::Deadline() const { return absl::Now() + options_.deadline; }

absl::StatusOr<std::shared_ptr<const v1::GetServerInfoResponse>> ClientCore::ServerInfo(
    absl::Time deadline) {
  {
    absl::MutexLock lock(&mutex_);
    if (info_ != nullptr) return info_;
  }
  auto info = std::make_shared<v1::GetServerInfoResponse>();
  AERIE_RETURN_IF_ERROR(connection_.Run(
      deadline,
      [&] {
        grpc::ClientContext context;
        context.set_deadline(absl::ToChronoTime(deadline));
        return rpc::FromGrpcStatus(connection_.stub().GetServerInfo(&context, {}, info.get()));
      },
      nullptr));
  if (info->protocol_version() < kProtocolVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("the server at ", connection_.address(), " speaks protocol version ",
                     info->protocol_version(), ", but this client needs ", kProtocolVersion,
                     "; upgrade the server or use an older client"));
  }
  absl::MutexLock lock(&mutex_);
  info_ = info;
  return info_;
}

void ClientCore::ForgetServerInfo() {
  absl::MutexLock lock(&mutex_);
  info_ = nullptr;
}

absl::StatusOr<v1::DraftStreamResponse> ClientCore::Exchange(
    std::shared_ptr<v1::DraftStreamRequest> request, const std::string& traceparent,
    absl::Time deadline, int* attempts) {
  request->set_id(next_id_.fetch_add(1, std::memory_order_relaxed));
  absl::StatusOr<v1::DraftStreamResponse> response = absl::UnknownError("not sent");
  AERIE_RETURN_IF_ERROR(connection_.Run(
      deadline,
      [&] {
        response = transport_->Exchange(request, traceparent, deadline);
        return response.status();
      },
      attempts));
  if (response->response_case() == static_cast<int>(request->request_case())) return response;
  return absl::InternalError(
      absl::StrCat("the server answered request kind ", static_cast<int>(request->request_case()),
                   " with response kind ", static_cast<int>(response->response_case()),
                   "; expected the same kind: client and server do not fit, compare versions"));
}

}  // namespace aerie
