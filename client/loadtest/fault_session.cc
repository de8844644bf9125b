#include "client/loadtest/fault_session.h"

#include <grpcpp/generic/generic_stub.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "aerie/v1/draft.grpc.pb.h"
#include "common/rpc/channel.h"
#include "common/rpc/codec.h"
#include "common/rpc/session_codec.h"
#include "common/rpc/status_codec.h"

namespace aerie::loadtest {
namespace {

// Enough to draft from, few enough to be nothing beside the load.
constexpr int64_t kRows = 4;
// How long the answer to a cancelled or meaningless call may take.
constexpr absl::Duration kPatience = absl::Seconds(30);

void SetDeadline(absl::Duration deadline, grpc::ClientContext* context) {
  context->set_deadline(absl::ToChronoTime(absl::Now() + deadline));
}

absl::Status ErrorOf(const v1::DraftStreamResponse& response) {
  return absl::Status(static_cast<absl::StatusCode>(response.error().code()),
                      response.error().message());
}

// Waits for the one call that was started on `queue`.
void WaitFor(grpc::CompletionQueue* queue) {
  void* tag = nullptr;
  bool ok = false;
  queue->Next(&tag, &ok);
  queue->Shutdown();
  while (queue->Next(&tag, &ok)) {
  }
}

}  // namespace

struct FaultSession::Wire {
  Wire(const std::string& address, const rpc::ChannelSecrets& secrets) {
    grpc::ChannelArguments arguments;
    // Not the connection of the sessions beside it.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel = rpc::OpenChannel(address, secrets, arguments);
    stub = v1::DraftService::NewStub(channel);
  }

  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::DraftService::Stub> stub;
  v1::OpenSessionRequest opening;
  v1::DraftRequest draft;  // all rows, from row 0
  std::string id;
};

FaultSession::FaultSession(const LoadOptions& options, const Workload& workload, int64_t number)
    : options_(options),
      vocab_size_(workload.manifest().vocab_size),
      wire_(std::make_unique<Wire>(options.address, options.secrets)) {
  rpc::EncodeManifest(workload.manifest(), wire_->opening.mutable_manifest());
  SessionOptions asked;
  asked.client = options.client;
  rpc::EncodeOpening(asked, &wire_->opening);
  const std::unique_ptr<Sequence> sequence = workload.NewSequence(number);
  const RowBatch prompt = sequence->Prompt();
  const int64_t rows = std::min<int64_t>(kRows, prompt.rows.rows());
  rpc::EncodeTokens(prompt.tokens.subspan(0, static_cast<size_t>(rows)),
                    wire_->draft.mutable_token_ids());
  rpc::EncodeHiddenStates(prompt.rows.Slice(0, rows), wire_->draft.mutable_hidden_states());
  wire_->draft.set_k(1);
}

FaultSession::~FaultSession() = default;

absl::Status FaultSession::Open() {
  grpc::ClientContext context;
  SetDeadline(options_.deadline, &context);
  v1::OpenSessionResponse response;
  const grpc::Status status = wire_->stub->OpenSession(&context, wire_->opening, &response);
  wire_->draft.set_session_id(response.session_id());
  wire_->id = response.session_id();
  ++counts_.sessions;
  return rpc::FromGrpcStatus(status);
}

void FaultSession::CountCall() {
  ++counts_.calls;
  counts_.rows += wire_->draft.token_ids_size();
  counts_.committed_tokens += wire_->draft.token_ids_size();
  counts_.bytes += static_cast<int64_t>(wire_->draft.hidden_states().data().size());
}

absl::Status FaultSession::Draft() { return Draft(options_.deadline); }

absl::Status FaultSession::Draft(absl::Duration deadline) {
  grpc::ClientContext context;
  SetDeadline(deadline, &context);
  CountCall();
  v1::DraftResponse response;
  return rpc::FromGrpcStatus(wire_->stub->Draft(&context, wire_->draft, &response));
}

absl::Status FaultSession::Close() {
  grpc::ClientContext context;
  SetDeadline(options_.deadline, &context);
  v1::CloseSessionRequest request;
  request.set_session_id(wire_->id);
  v1::CloseSessionResponse response;
  return rpc::FromGrpcStatus(wire_->stub->CloseSession(&context, request, &response));
}

absl::Status FaultSession::DraftAndCancel() {
  CountCall();
  grpc::ClientContext context;
  SetDeadline(kPatience, &context);
  grpc::CompletionQueue queue;
  v1::DraftResponse response;
  grpc::Status status;
  const auto call = wire_->stub->AsyncDraft(&context, wire_->draft, &queue);
  call->Finish(&response, &status, nullptr);
  context.TryCancel();
  WaitFor(&queue);
  return rpc::FromGrpcStatus(status);
}

absl::Status FaultSession::DraftWithMissingBytes() {
  std::string* const data = wire_->draft.mutable_hidden_states()->mutable_data();
  const char last = data->back();
  data->pop_back();
  const absl::Status status = Draft();
  data->push_back(last);
  return status;
}

absl::Status FaultSession::DraftWithForeignToken() {
  const uint32_t first = wire_->draft.token_ids(0);
  wire_->draft.set_token_ids(0, static_cast<uint32_t>(vocab_size_));
  const absl::Status status = Draft();
  wire_->draft.set_token_ids(0, first);
  return status;
}

absl::Status FaultSession::SendGarbage() {
  grpc::ClientContext context;
  SetDeadline(kPatience, &context);
  grpc::CompletionQueue queue;
  // A length-delimited field that claims more bytes than follow.
  const grpc::Slice slice(std::string("\x0a\xff\xff\x03garbage", 11));
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  grpc::Status status;
  grpc::GenericStub stub(wire_->channel);
  const auto call =
      stub.PrepareUnaryCall(&context, "/aerie.v1.DraftService/Draft", request, &queue);
  call->StartCall();
  call->Finish(&response, &status, nullptr);
  WaitFor(&queue);
  return rpc::FromGrpcStatus(status);
}

absl::Status FaultSession::StreamWithoutReading() {
  grpc::ClientContext context;
  SetDeadline(options_.deadline, &context);
  const auto stream = wire_->stub->DraftStream(&context);
  const auto ended = [&] {
    stream->WritesDone();
    return rpc::FromGrpcStatus(stream->Finish());
  };
  v1::DraftStreamRequest request;
  request.set_id(1);
  *request.mutable_open_session() = wire_->opening;
  v1::DraftStreamResponse response;
  ++counts_.sessions;
  if (!stream->Write(request) || !stream->Read(&response)) return ended();
  if (response.has_error()) {
    ended().IgnoreError();
    return ErrorOf(response);
  }
  const std::string opened = response.open_session().session_id();
  *request.mutable_draft() = wire_->draft;
  request.mutable_draft()->set_session_id(opened);
  int sent = 0;
  for (; sent < kUnread; ++sent) {
    request.set_id(static_cast<uint64_t>(sent) + 2);
    request.mutable_draft()->set_seq(static_cast<uint64_t>(sent) + 1);
    if (!stream->Write(request)) break;
    CountCall();
  }
  absl::Status first_error;
  int answers = 0;
  while (answers < sent && stream->Read(&response)) {
    ++answers;
    if (response.has_error() && first_error.ok()) first_error = ErrorOf(response);
  }
  // On the stream: sessions that end with it are counted some time later.
  request.mutable_close_session()->set_session_id(opened);
  if (answers == sent && stream->Write(request)) stream->Read(&response);
  absl::Status end = ended();
  if (!first_error.ok()) return first_error;
  if (end.ok() && answers < sent) {
    return absl::InternalError(
        absl::StrCat("the stream ended well after ", answers, " of ", sent, " answers"));
  }
  if (end.ok()) return Close();
  return end;
}

void FaultSession::DropConnection() {
  auto fresh = std::make_unique<Wire>(options_.address, options_.secrets);
  fresh->opening = wire_->opening;
  fresh->draft = wire_->draft;
  fresh->id = wire_->id;
  wire_ = std::move(fresh);
}

}  // namespace aerie::loadtest
