// The gRPC face of the engine: one short method per RPC that decodes, hands on and encodes.
//
// Methods run on gRPC's threads and never wait, but a draft of few rows may be computed on the
// thread that read it (thread_loan.h). Replies are given from the engine thread. A call that comes
// before Serve() is answered UNAVAILABLE.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "aerie/v1/draft.grpc.pb.h"
#include "server/transport/access_control.h"
#include "server/transport/service_backend.h"
#include "server/transport/stream_registry.h"

namespace aerie {

// All methods are gRPC's callback kind; the stream reads and writes its messages itself.
using DraftServiceBase = v1::DraftService::WithCallbackMethod_GetServerInfo<
    v1::DraftService::WithCallbackMethod_OpenSession<v1::DraftService::WithCallbackMethod_Draft<
        v1::DraftService::WithRawCallbackMethod_DraftStream<
            v1::DraftService::WithCallbackMethod_CloseSession<
                v1::DraftService::WithCallbackMethod_RegisterSharedMemory<
                    v1::DraftService::WithCallbackMethod_UnregisterSharedMemory<
                        v1::DraftService::Service>>>>>>>;

class DraftServiceImpl final : public DraftServiceBase {
 public:
  explicit DraftServiceImpl(ServiceLimits limits) : limits_(limits) {}

  // Who may call; before there are calls. Without it everybody may.
  void Guard(std::shared_ptr<const AccessControl> access) { access_ = std::move(access); }

  // From now on calls are served. Once; any thread.
  void Serve(ServiceBackend backend);

  // Ends every stream with UNAVAILABLE as soon as what it has been asked is answered, and every new
  // one at once. Any thread; does not wait.
  void DrainStreams() { streams_.Drain(); }
  // Returns once every stream has ended, or at `deadline`; true when all have.
  bool AwaitStreams(absl::Time deadline) { return streams_.AwaitEmpty(deadline); }

  grpc::ServerUnaryReactor* GetServerInfo(grpc::CallbackServerContext* context,
                                          const v1::GetServerInfoRequest* request,
                                          v1::GetServerInfoResponse* response) override;
  grpc::ServerUnaryReactor* OpenSession(grpc::CallbackServerContext* context,
                                        const v1::OpenSessionRequest* request,
                                        v1::OpenSessionResponse* response) override;
  grpc::ServerUnaryReactor* Draft(grpc::CallbackServerContext* context,
                                  const v1::DraftRequest* request,
                                  v1::DraftResponse* response) override;
  grpc::ServerUnaryReactor* CloseSession(grpc::CallbackServerContext* context,
                                         const v1::CloseSessionRequest* request,
                                         v1::CloseSessionResponse* response) override;
  // In shared_memory_calls.cc.
  grpc::ServerUnaryReactor* RegisterSharedMemory(
      grpc::CallbackServerContext* context, const v1::RegisterSharedMemoryRequest* request,
      v1::RegisterSharedMemoryResponse* response) override;
  grpc::ServerUnaryReactor* UnregisterSharedMemory(
      grpc::CallbackServerContext* context, const v1::UnregisterSharedMemoryRequest* request,
      v1::UnregisterSharedMemoryResponse* response) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* DraftStream(
      grpc::CallbackServerContext* context) override;

 private:
  const ServiceLimits limits_;
  std::shared_ptr<const AccessControl> access_;  // may be null
  std::unique_ptr<const ServiceBackend> backend_owner_;
  std::atomic<const ServiceBackend*> backend_{nullptr};  // null until Serve()
  StreamRegistry streams_;
};

}  // namespace aerie
