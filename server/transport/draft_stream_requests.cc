// What a DraftStream does with one request: decode, hand on, encode. The rest of the stream is in
// draft_stream.cc.
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/error_detail.h"
#include "common/rpc/status_codec.h"
#include "server/transport/call_trace.h"
#include "server/transport/draft_messages.h"
#include "server/transport/draft_stream.h"

namespace aerie {

std::vector<DraftStream::RequestPtr> DraftStream::Unpack(RequestPtr message) const {
  v1::DraftStreamBatch* const batch =
      message->message.has_batch() ? message->message.mutable_batch() : nullptr;
  if (batch == nullptr || batch->requests().empty() ||
      batch->requests_size() > limits_.max_stream_in_flight) {
    return {std::move(message)};
  }
  int64_t held = message->bytes;
  for (const v1::DraftStreamRequest& each : batch->requests()) {
    held += BytesInSharedMemory(each.draft(), limits_.max_message_bytes);
  }
  if (held > limits_.max_message_bytes) return {std::move(message)};
  std::vector<RequestPtr> out;
  for (v1::DraftStreamRequest& each : *batch->mutable_requests()) {
    const RequestPtr request = std::make_shared<Request>();
    request->message = std::move(each);  // its rows stay where they lie
    request->bytes = static_cast<int64_t>(request->message.ByteSizeLong());
    request->held =
        request->bytes + BytesInSharedMemory(request->message.draft(), limits_.max_message_bytes);
    request->arrival = message->arrival;
    out.push_back(request);
  }
  return out;
}

void DraftStream::Handle(const RequestPtr& request, ThreadLoan& thread) {
  const absl::Status size = CheckMessageSize(request->bytes, limits_.max_message_bytes);
  if (!size.ok()) return Reject(request, size, *backend_->drafters->First());
  switch (request->message.request_case()) {
    case v1::DraftStreamRequest::kOpenSession:
      return HandleOpen(request);
    case v1::DraftStreamRequest::kDraft:
      return HandleDraft(request, thread);
    case v1::DraftStreamRequest::kCloseSession:
      return HandleClose(request);
    case v1::DraftStreamRequest::kBatch:
      return RefuseBatch(request);
    case v1::DraftStreamRequest::REQUEST_NOT_SET:
      return Reject(request,
                    WithReason(absl::InvalidArgumentError(
                                   "the stream request is empty; expected open_session, "
                                   "draft, close_session or batch; set one of them"),
                               kReasonRequestInvalid),
                    *backend_->drafters->First());
  }
}

void DraftStream::HandleOpen(const RequestPtr& request) {
  absl::StatusOr<OpenCall> open = DecodeOpenRequest(request->message.open_session());
  if (!open.ok()) return Reject(request, open.status(), *backend_->drafters->First());
  const absl::StatusOr<ServedDrafterPtr> drafter = DrafterOf(*open, *backend_->drafters);
  if (!drafter.ok()) return FailNobodys(request, drafter.status());
  if (!TakeShare(request, /*rows=*/0, **drafter)) return;
  if (absl::Status client = SettleClient(caller_, &open->options.client); !client.ok()) {
    return Fail(request, client);
  }
  open->options.traceparent =
      TraceOf(open->options.traceparent, traceparent_, backend_->rpc_observer);
  (*drafter)->engine->Open(std::move(open->manifest), open->options,
                           [self = shared_from_this(), request, drafter = *drafter,
                            asked = open->options](absl::StatusOr<OpenResult> result) mutable {
                             if (!result.ok()) return self->Fail(request, result.status());
                             self->Own(result->session_id);
                             LogOpened(result->session_id, asked);
                             v1::DraftStreamResponse response;
                             EncodeOpenResult(*result, std::move(asked),
                                              response.mutable_open_session());
                             self->Tell(*request, absl::OkStatus());
                             self->Reply(request, std::move(response));
                           });
}

void DraftStream::HandleDraft(const RequestPtr& request, ThreadLoan& thread) {
  const absl::StatusOr<ServedDrafterPtr> drafter =
      DrafterOf(request->message.draft(), *backend_->drafters);
  if (!drafter.ok()) return FailNobodys(request, drafter.status());
  if (!TakeShare(request, request->message.draft().token_ids_size(), **drafter)) return;
  absl::StatusOr<DraftCall> call =
      DecodeDraftRequest(request->message.draft(), (*drafter)->engine->spec(), request->arrival,
                         deadline_, {backend_->shared_memory, caller_, context_});
  if (!call.ok()) return Reject(request, call.status(), **drafter);
  // Rows that were unpacked or copied own themselves; others point into the request.
  if (call->rows_owner == nullptr) call->rows_owner = request;
  call->client = caller_;
  call->cancel = request->cancel;
  call->copy_in = absl::Now() - request->arrival;
  thread.Draft(
      *drafter, *std::move(call),
      [self = shared_from_this(), request, drafter = *drafter](absl::StatusOr<DraftResult> result) {
        if (!result.ok()) return self->Fail(request, result.status());
        v1::DraftStreamResponse response;
        EncodeAndTell(*result, drafter->round_observer, response.mutable_draft());
        self->Tell(*request, absl::OkStatus());
        self->Reply(request, std::move(response));
      });
}

void DraftStream::HandleClose(const RequestPtr& request) {
  const v1::CloseSessionRequest& close = request->message.close_session();
  const absl::StatusOr<ServedDrafterPtr> drafter =
      backend_->drafters->ForSession(close.session_id());
  if (!drafter.ok()) return FailNobodys(request, drafter.status());
  absl::StatusOr<std::vector<int32_t>> tokens =
      DecodeFinalTokens(close, (*drafter)->engine->spec());
  if (!tokens.ok()) return Reject(request, tokens.status(), **drafter);
  (*drafter)->engine->Close(close.session_id(), *std::move(tokens), SessionEnd::kClosed,
                            [self = shared_from_this(), request,
                             drafter = *drafter](absl::StatusOr<AcceptanceRecord> record) {
                              if (!record.ok()) return self->Fail(request, record.status());
                              self->Disown(request->message.close_session().session_id());
                              v1::DraftStreamResponse response;
                              EncodeCloseResult(*record, response.mutable_close_session());
                              self->Tell(*request, absl::OkStatus());
                              self->Reply(request, std::move(response));
                            });
}

void DraftStream::RefuseBatch(const RequestPtr& request) {
  Reject(request,
         WithReason(absl::InvalidArgumentError(absl::StrCat(
                        "a batch of ", request->message.batch().requests_size(),
                        " requests; expected 1 to ", limits_.max_stream_in_flight,
                        " (Limits.max_batch_requests) with at most ", limits_.max_message_bytes,
                        " bytes, rows in shared memory included, in a message of its own and not ",
                        "within another batch; send several messages")),
                    kReasonRequestInvalid),
         *backend_->drafters->First());
}

bool DraftStream::TakeShare(const RequestPtr& request, int64_t rows, const ServedDrafter& drafter) {
  if (limits_.clients == nullptr) return true;
  RejectReason reason = RejectReason::kClientRows;
  absl::StatusOr<ClientLimits::Stay> stay =
      limits_.clients->Admit(account_, request->held, rows, &reason);
  if (!stay.ok()) {
    if (drafter.round_observer != nullptr) drafter.round_observer->OnRejected(reason);
    Fail(request, stay.status());
    return false;
  }
  request->stay = *std::move(stay);
  return true;
}

void DraftStream::Tell(const Request& request, const absl::Status& status) const {
  const v1::DraftStreamRequest& message = request.message;
  CallKind kind = CallKind::kDraft;
  std::string_view name = "Draft";
  const std::string* session = &message.draft().session_id();
  switch (message.request_case()) {
    case v1::DraftStreamRequest::kOpenSession:
      kind = CallKind::kOpenSession;
      name = "OpenSession";
      break;
    case v1::DraftStreamRequest::kDraft:
      break;
    case v1::DraftStreamRequest::kCloseSession:
      kind = CallKind::kCloseSession;
      name = "CloseSession";
      session = &message.close_session().session_id();
      break;
    case v1::DraftStreamRequest::kBatch:
    case v1::DraftStreamRequest::REQUEST_NOT_SET:
      return;  // it asked for nothing that could be counted
  }
  LogAnswer(name, status, *session, traceparent_);
  if (backend_->rpc_observer != nullptr) {
    backend_->rpc_observer->OnAnswered(kind, RpcType::kBidiStream, status.code());
  }
}

void DraftStream::Reject(const RequestPtr& request, const absl::Status& status,
                         const ServedDrafter& drafter) {
  if (drafter.round_observer != nullptr) drafter.round_observer->OnRejected(RejectReason::kShape);
  Fail(request, status);
}

void DraftStream::FailNobodys(const RequestPtr& request, const absl::Status& status) {
  TellNobodys(status, *backend_->drafters->First());
  Fail(request, status);
}

void DraftStream::Fail(const RequestPtr& request, const absl::Status& status) {
  v1::DraftStreamResponse response;
  *response.mutable_error() = rpc::ToErrorDetail(status);
  Tell(*request, status);
  Reply(request, std::move(response));
}

}  // namespace aerie
