// The calls of DraftServiceImpl about shared memory; the others are in draft_service.cc.
#include <string>
#include <utility>

#include "common/session_options.h"
#include "server/transport/draft_service.h"
#include "server/transport/unary_call.h"

namespace aerie {

grpc::ServerUnaryReactor* DraftServiceImpl::RegisterSharedMemory(
    grpc::CallbackServerContext* context, const v1::RegisterSharedMemoryRequest* request,
    v1::RegisterSharedMemoryResponse* response) {
  const ServiceBackend* backend = backend_.load(std::memory_order_acquire);
  auto* call = new UnaryCall(backend, *context, {.method = "RegisterSharedMemory"}, *request);
  if (!call->Admit(access_.get(), limits_)) return call;
  std::string client = request->client();
  absl::Status allowed =
      SharedMemoryAccess{backend->shared_memory, call->caller(), context}.Check();
  if (allowed.ok()) allowed = SessionOptions{.client = client}.Validate();
  if (allowed.ok()) allowed = SettleClient(call->caller(), &client);
  if (!allowed.ok()) {
    call->Fail(allowed);
    return call;
  }
  absl::StatusOr<v1::RegisterSharedMemoryResponse> registered =
      backend->shared_memory->Register(call->caller(), client, *request);
  if (!registered.ok()) {
    call->Fail(registered.status());
    return call;
  }
  *response = *std::move(registered);
  call->Succeed(*response);
  return call;
}

grpc::ServerUnaryReactor* DraftServiceImpl::UnregisterSharedMemory(
    grpc::CallbackServerContext* context, const v1::UnregisterSharedMemoryRequest* request,
    v1::UnregisterSharedMemoryResponse* response) {
  const ServiceBackend* backend = backend_.load(std::memory_order_acquire);
  auto* call = new UnaryCall(backend, *context, {.method = "UnregisterSharedMemory"}, *request);
  if (!call->Admit(access_.get(), limits_)) return call;
  // Where none is taken none is known, which is no error.
  absl::Status done;
  if (backend->shared_memory != nullptr) {
    done = backend->shared_memory->Unregister(call->caller(), request->segment_id());
  }
  if (done.ok()) {
    call->Succeed(*response);
  } else {
    call->Fail(done);
  }
  return call;
}

}  // namespace aerie
