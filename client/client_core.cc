#include "client/client_core.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/session_key.h"
#include "client/stream_transport.h"
#include "client/unary_transport.h"
#include "common/error_detail.h"
#include "common/rpc/status_codec.h"
#include "common/status_macros.h"

namespace aerie {
namespace {

constexpr uint32_t kProtocolVersion = 1;

std::unique_ptr<DraftTransport> MakeTransport(TransportKind kind, Connection* connection,
                                              const std::string& key) {
  if (kind == TransportKind::kStream) return std::make_unique<StreamTransport>(connection, key);
  return std::make_unique<UnaryTransport>(connection);
}

}  // namespace

ClientCore::ClientCore(std::string address, const ClientOptions& options)
    : options_(options),
      key_(NewSessionKey()),
      connection_(std::move(address), options),
      shared_rows_(options, key_, &connection_),
      transport_(MakeTransport(options.transport, &connection_, key_)) {}

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
        AddSessionKey(key_, &context);
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

void ClientCore::RememberKey(const std::string& session_id, const std::string& key) {
  absl::MutexLock lock(&mutex_);
  keys_[session_id] = key;
}

void ClientCore::ForgetKey(const std::string& session_id) {
  absl::MutexLock lock(&mutex_);
  keys_.erase(session_id);
}

std::optional<std::string> ClientCore::KeyOf(const std::string& session_id) {
  absl::MutexLock lock(&mutex_);
  const auto it = keys_.find(session_id);
  if (it == keys_.end()) return std::nullopt;
  return it->second;
}

absl::StatusOr<v1::DraftStreamResponse> ClientCore::Exchange(
    std::shared_ptr<v1::DraftStreamRequest> request, const CallMetadata& metadata,
    absl::Time deadline, int* attempts) {
  request->set_id(next_id_.fetch_add(1, std::memory_order_relaxed));
  absl::StatusOr<v1::DraftStreamResponse> response = absl::UnknownError("not sent");
  AERIE_RETURN_IF_ERROR(connection_.Run(
      deadline,
      [&] {
        response = transport_->Exchange(request, metadata, deadline);
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
