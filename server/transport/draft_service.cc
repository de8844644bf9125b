#include "server/transport/draft_service.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "common/check.h"
#include "server/transport/call_trace.h"
#include "server/transport/draft_messages.h"
#include "server/transport/draft_stream.h"
#include "server/transport/server_info.h"
#include "server/transport/thread_loan.h"
#include "server/transport/unary_call.h"

namespace aerie {

void DraftServiceImpl::Serve(ServiceBackend backend) {
  AERIE_CHECK(backend_owner_ == nullptr) << "a service has one backend";
  AERIE_CHECK(backend.drafters != nullptr);
  backend_owner_ = std::make_unique<const ServiceBackend>(std::move(backend));
  backend_.store(backend_owner_.get(), std::memory_order_release);
}

grpc::ServerUnaryReactor* DraftServiceImpl::GetServerInfo(grpc::CallbackServerContext* context,
                                                          const v1::GetServerInfoRequest* request,
                                                          v1::GetServerInfoResponse* response) {
  const ServiceBackend* backend = backend_.load(std::memory_order_acquire);
  auto* call = new UnaryCall(backend, *context, {.method = "GetServerInfo"}, *request);
  if (!call->Admit(access_.get(), limits_)) return call;
  *response = backend->info;
  AddDrafters(backend->drafters->Current(), response);
  const SharedMemoryAccess shared{backend->shared_memory, call->caller(), context};
  if (shared.Check().ok()) response->add_transports(v1::TRANSPORT_SHARED_MEMORY);
  call->Succeed(*response);
  return call;
}

grpc::ServerUnaryReactor* DraftServiceImpl::OpenSession(grpc::CallbackServerContext* context,
                                                        const v1::OpenSessionRequest* request,
                                                        v1::OpenSessionResponse* response) {
  const ServiceBackend* backend = backend_.load(std::memory_order_acquire);
  auto* call = new UnaryCall(backend, *context,
                             {.method = "OpenSession", .kind = CallKind::kOpenSession}, *request);
  if (!call->Admit(access_.get(), limits_)) return call;
  absl::StatusOr<OpenCall> open = DecodeOpenRequest(*request);
  if (!open.ok()) {
    call->Reject(open.status(), *backend->drafters->First());
    return call;
  }
  absl::StatusOr<ServedDrafterPtr> drafter = DrafterOf(*open, *backend->drafters);
  if (!drafter.ok()) {
    TellNobodys(drafter.status(), *backend->drafters->First());
    call->Fail(drafter.status());
    return call;
  }
  if (!call->TakeShare(limits_, /*rows=*/0, /*shared_bytes=*/0, **drafter)) return call;
  if (absl::Status client = SettleClient(call->caller(), &open->options.client); !client.ok()) {
    call->Fail(client);
    return call;
  }
  open->options.traceparent =
      TraceOf(open->options.traceparent, call->traceparent(), backend->rpc_observer);
  (*drafter)->engine->Open(std::move(open->manifest), open->options,
                           [context, drafter = *drafter, call, response,
                            asked = open->options](absl::StatusOr<OpenResult> result) mutable {
                             if (!result.ok()) return call->Fail(result.status());
                             // A client that has gone never learns the id: nobody would close the
                             // session.
                             if (context->IsCancelled()) {
                               drafter->engine->Close(result->session_id, {}, SessionEnd::kClosed,
                                                      [](absl::StatusOr<AcceptanceRecord>) {});
                             }
                             LogOpened(result->session_id, asked);
                             EncodeOpenResult(*result, std::move(asked), response);
                             call->Succeed(*response);
                           });
  return call;
}

grpc::ServerUnaryReactor* DraftServiceImpl::Draft(grpc::CallbackServerContext* context,
                                                  const v1::DraftRequest* request,
                                                  v1::DraftResponse* response) {
  const ServiceBackend* backend = backend_.load(std::memory_order_acquire);
  auto* call = new UnaryCall(
      backend, *context,
      {.method = "Draft", .kind = CallKind::kDraft, .session = &request->session_id()}, *request);
  if (!call->Admit(access_.get(), limits_)) return call;
  absl::StatusOr<ServedDrafterPtr> drafter = DrafterOf(*request, *backend->drafters);
  if (!drafter.ok()) {
    TellNobodys(drafter.status(), *backend->drafters->First());
    call->Fail(drafter.status());
    return call;
  }
  if (!call->TakeShare(limits_, request->token_ids_size(),
                       BytesInSharedMemory(*request, limits_.max_message_bytes), **drafter)) {
    return call;
  }
  absl::StatusOr<DraftCall> draft =
      DecodeDraftRequest(*request, (*drafter)->engine->spec(), call->arrival(),
                         DeadlineOf(*context), {backend->shared_memory, call->caller(), context});
  if (!draft.ok()) {
    call->Reject(draft.status(), **drafter);
    return call;
  }
  // Rows that lie in the message need no rows_owner: gRPC keeps the request until the reply is
  // given.
  draft->client = call->caller();
  draft->cancel = call->cancel();
  draft->copy_in = absl::Now() - call->arrival();
  ThreadLoan(request->token_ids_size())
      .Draft(*drafter, *std::move(draft),
             [drafter = *drafter, call, response](absl::StatusOr<DraftResult> result) {
               if (!result.ok()) return call->Fail(result.status());
               EncodeAndTell(*result, drafter->round_observer, response);
               call->Succeed(*response);
             });
  return call;
}

grpc::ServerUnaryReactor* DraftServiceImpl::CloseSession(grpc::CallbackServerContext* context,
                                                         const v1::CloseSessionRequest* request,
                                                         v1::CloseSessionResponse* response) {
  const ServiceBackend* backend = backend_.load(std::memory_order_acquire);
  auto* call = new UnaryCall(backend, *context,
                             {.method = "CloseSession",
                              .kind = CallKind::kCloseSession,
                              .session = &request->session_id()},
                             *request);
  if (!call->Admit(access_.get(), limits_)) return call;
  const absl::StatusOr<ServedDrafterPtr> drafter =
      backend->drafters->ForSession(request->session_id());
  if (!drafter.ok()) {
    call->Fail(drafter.status());
    return call;
  }
  absl::StatusOr<std::vector<int32_t>> tokens =
      DecodeFinalTokens(*request, (*drafter)->engine->spec());
  if (!tokens.ok()) {
    call->Reject(tokens.status(), **drafter);
    return call;
  }
  (*drafter)->engine->Close(
      request->session_id(), *std::move(tokens), SessionEnd::kClosed,
      [drafter = *drafter, call, response](absl::StatusOr<AcceptanceRecord> record) {
        if (!record.ok()) return call->Fail(record.status());
        EncodeCloseResult(*record, response);
        call->Succeed(*response);
      });
  return call;
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* DraftServiceImpl::DraftStream(
    grpc::CallbackServerContext* context) {
  return aerie::DraftStream::Start(backend_.load(std::memory_order_acquire), access_.get(), limits_,
                                   context, &streams_);
}

}  // namespace aerie
