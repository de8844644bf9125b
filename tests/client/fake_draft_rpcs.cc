// FakeDraftService's gRPC side: decode, hand on, encode.
#include <optional>
#include <set>
#include <utility>

#include "common/rpc/codec.h"
#include "common/rpc/status_codec.h"
#include "tests/client/fake_draft_service.h"

namespace aerie {

void FakeDraftService::NoteKey(const std::string& rpc, const grpc::ServerContext& context) {
  const auto [first, last] = context.client_metadata().equal_range("aerie-session");
  absl::MutexLock lock(&mutex_);
  if (first == last) keys_.emplace_back(rpc, "");
  for (auto it = first; it != last; ++it) {
    keys_.emplace_back(rpc, std::string(it->second.data(), it->second.size()));
  }
}

grpc::Status FakeDraftService::GetServerInfo(grpc::ServerContext* context,
                                             const v1::GetServerInfoRequest*,
                                             v1::GetServerInfoResponse* response) {
  NoteKey("GetServerInfo", *context);
  response->set_protocol_version(1);
  response->mutable_build()->set_version("test");
  *response->mutable_limits() = limits;
  const Manifest manifest = FittingManifest();
  v1::DrafterInfo& drafter = *response->add_drafters();
  drafter.set_name("fake");
  drafter.set_version("0123");
  rpc::EncodeWiring(manifest.wiring, drafter.mutable_captures());
  drafter.set_target_num_layers(manifest.num_layers);
  drafter.set_target_hidden_size(manifest.hidden_size);
  drafter.set_vocab_size(manifest.vocab_size);
  for (const auto dtype : {v1::DATA_TYPE_BFLOAT16, v1::DATA_TYPE_FLOAT32}) {
    response->add_dtypes(dtype);
  }
  return grpc::Status::OK;
}

grpc::Status FakeDraftService::OpenSession(grpc::ServerContext* context,
                                           const v1::OpenSessionRequest* request,
                                           v1::OpenSessionResponse* response) {
  NoteKey("OpenSession", *context);
  auto answer = Open(*request);
  if (answer.ok()) *response = *std::move(answer);
  return rpc::ToGrpcStatus(answer.status());
}

grpc::Status FakeDraftService::Draft(grpc::ServerContext* context, const v1::DraftRequest* request,
                                     v1::DraftResponse* response) {
  NoteKey("Draft", *context);
  auto answer = ServeDraft(*request);
  if (answer.ok()) *response = *std::move(answer);
  return rpc::ToGrpcStatus(answer.status());
}

grpc::Status FakeDraftService::CloseSession(grpc::ServerContext* context,
                                            const v1::CloseSessionRequest* request,
                                            v1::CloseSessionResponse* response) {
  NoteKey("CloseSession", *context);
  auto answer = Close(*request);
  if (answer.ok()) *response = *std::move(answer);
  return rpc::ToGrpcStatus(answer.status());
}

grpc::Status FakeDraftService::DraftStream(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<v1::DraftStreamResponse, v1::DraftStreamRequest>* stream) {
  NoteKey("DraftStream", *context);
  {
    absl::MutexLock lock(&mutex_);
    ++streams_;
  }
  std::set<std::string> opened;
  v1::DraftStreamRequest request;
  // Answers of different sessions may overtake each other: every second one is held back behind the
  // next.
  std::optional<v1::DraftStreamResponse> held_back;
  bool hold = false;
  while (stream->Read(&request)) {
    v1::DraftStreamResponse response;
    response.set_id(request.id());
    absl::Status status;
    if (request.has_open_session()) {
      auto answer = Open(request.open_session());
      status = answer.status();
      if (answer.ok()) {
        opened.insert(answer->session_id());
        *response.mutable_open_session() = *std::move(answer);
      }
    } else if (request.has_draft()) {
      auto answer = ServeDraft(request.draft());
      status = answer.status();
      if (answer.ok()) *response.mutable_draft() = *std::move(answer);
    } else {
      auto answer = Close(request.close_session());
      status = answer.status();
      if (answer.ok()) *response.mutable_close_session() = *std::move(answer);
    }
    if (!status.ok()) *response.mutable_error() = rpc::ToErrorDetail(status);
    // A k of 7 asks to be overtaken by the next answer.
    hold = request.has_draft() && request.draft().k() == 7 && !held_back.has_value();
    if (hold) {
      held_back = response;
      continue;
    }
    stream->Write(response);
    if (held_back.has_value()) stream->Write(*std::exchange(held_back, std::nullopt));
  }
  absl::MutexLock lock(&mutex_);
  for (const std::string& id : opened) sessions_.erase(id);
  return grpc::Status::OK;
}

}  // namespace aerie
