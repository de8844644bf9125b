#include "server/transport/draft_service.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "common/check.h"
#include "common/rpc/wiring_report_codec.h"
#include "server/transport/call_trace.h"
#include "server/transport/draft_messages.h"
#include "server/transport/draft_stream.h"
#include "server/transport/unary_call.h"

namespace aerie {

void DraftServiceImpl::Serve(ServiceBackend backend) {
  AERIE_CHECK(backend_owner_ == nullptr) << "a service has one backend";
  AERIE_CHECK(backend.engine != nullptr);
  backend_owner_ = std::make_unique<const ServiceBackend>(std::move(backend));
  backend_.store(backend_owner_.get(), std::memory_order_release);
}

grpc::ServerUnaryReactor* DraftServiceImpl::GetServerInfo(grpc::CallbackServerContext* context,
                                                          const v1::GetServerInfoRequest* request,
                                                          v1::GetServerInfoResponse* response) {
  const ServiceBackend* backend = backend_.load(std::memory_order_acquire);
  auto* call = new UnaryCall(backend, *context, {.method = "GetServerInfo"}, *request);
  if (!call->Admit(limits_)) return call;
  *response = backend->info;
  if (backend->wiring_state) {
    response->mutable_wiring_guard()->set_worst(rpc::EncodeWiringState(backend->wiring_state()));
  }
  if (backend->recording) response->set_recording(backend->recording());
  call->Succeed(*response);
  return call;
}

grpc::ServerUnaryReactor* DraftServiceImpl::OpenSession(grpc::CallbackServerContext* context,
                                                        const v1::OpenSessionRequest* request,
                                                        v1::OpenSessionResponse* response) {
  const ServiceBackend* backend = backend_.load(std::memory_order_acquire);
  auto* call = new UnaryCall(backend, *context,
                             {.method = "OpenSession", .kind = CallKind::kOpenSession}, *request);
  if (!call->Admit(limits_)) return call;
  absl::StatusOr<OpenCall> open = DecodeOpenRequest(*request);
  if (!open.ok()) {
    call->Reject(open.status());
    return call;
  }
  open->options.traceparent =
      TraceOf(open->options.traceparent, call->traceparent(), backend->rpc_observer);
  backend->engine->Open(std::move(open->manifest), open->options,
                        [context, backend, call, response,
                         asked = open->options](absl::StatusOr<OpenResult> result) mutable {
                          if (!result.ok()) return call->Fail(result.status());
                          // A client that has gone never learns the id: nobody would close the
                          // session.
                          if (context->IsCancelled()) {
                            backend->engine->Close(result->session_id, {}, SessionEnd::kClosed,
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
  if (!call->Admit(limits_)) return call;
  absl::StatusOr<DraftCall> draft =
      DecodeDraftRequest(*request, backend->engine->spec(), call->arrival(), DeadlineOf(*context));
  if (!draft.ok()) {
    call->Reject(draft.status());
    return call;
  }
  // Rows that are not unpacked need no rows_owner: gRPC keeps the request until the reply is given.
  draft->cancel = call->cancel();
  draft->copy_in = absl::Now() - call->arrival();
  backend->engine->Draft(*std::move(draft),
                         [backend, call, response](absl::StatusOr<DraftResult> result) {
                           if (!result.ok()) return call->Fail(result.status());
                           EncodeAndTell(*result, backend->round_observer, response);
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
  if (!call->Admit(limits_)) return call;
  absl::StatusOr<std::vector<int32_t>> tokens =
      DecodeFinalTokens(*request, backend->engine->spec());
  if (!tokens.ok()) {
    call->Reject(tokens.status());
    return call;
  }
  backend->engine->Close(request->session_id(), *std::move(tokens), SessionEnd::kClosed,
                         [call, response](absl::StatusOr<AcceptanceRecord> record) {
                           if (!record.ok()) return call->Fail(record.status());
                           EncodeCloseResult(*record, response);
                           call->Succeed(*response);
                         });
  return call;
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* DraftServiceImpl::DraftStream(
    grpc::CallbackServerContext* context) {
  return aerie::DraftStream::Start(backend_.load(std::memory_order_acquire), limits_, context,
                                   &streams_);
}

}  // namespace aerie
