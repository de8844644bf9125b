#include "client/loadtest/null_server.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "aerie/v1/draft.grpc.pb.h"
#include "client/loadtest/null_drafter.h"
#include "common/rpc/status_codec.h"

namespace aerie::loadtest {
namespace {

constexpr int kMaxMessageBytes = 64 << 20;

// One stream: reads, answers, reads on. Its sessions end with it.
class NullStream : public grpc::ServerBidiReactor<v1::DraftStreamRequest, v1::DraftStreamResponse> {
 public:
  explicit NullStream(NullDrafter* drafter) : drafter_(drafter) { StartRead(&request_); }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    drafter_->Answer(request_, &response_);
    if (response_.has_open_session()) opened_.insert(response_.open_session().session_id());
    if (request_.has_close_session()) opened_.erase(request_.close_session().session_id());
    StartWrite(&response_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    StartRead(&request_);
  }
  void OnDone() override {
    for (const std::string& id : opened_) {
      v1::CloseSessionRequest request;
      request.set_session_id(id);
      v1::CloseSessionResponse response;
      drafter_->Close(request, &response).IgnoreError();
    }
    delete this;
  }

  NullDrafter* const drafter_;
  v1::DraftStreamRequest request_;
  v1::DraftStreamResponse response_;
  std::set<std::string> opened_;
};

class NullService : public v1::DraftService::CallbackService {
 public:
  explicit NullService(const NullServerOptions& options) : drafter_(options) {}

  grpc::ServerUnaryReactor* GetServerInfo(grpc::CallbackServerContext* context,
                                          const v1::GetServerInfoRequest*,
                                          v1::GetServerInfoResponse* response) override {
    drafter_.Info(response);
    return End(context, absl::OkStatus());
  }
  grpc::ServerUnaryReactor* OpenSession(grpc::CallbackServerContext* context,
                                        const v1::OpenSessionRequest* request,
                                        v1::OpenSessionResponse* response) override {
    return End(context, drafter_.Open(*request, response));
  }
  grpc::ServerUnaryReactor* Draft(grpc::CallbackServerContext* context,
                                  const v1::DraftRequest* request,
                                  v1::DraftResponse* response) override {
    return End(context, drafter_.Draft(*request, response));
  }
  grpc::ServerUnaryReactor* CloseSession(grpc::CallbackServerContext* context,
                                         const v1::CloseSessionRequest* request,
                                         v1::CloseSessionResponse* response) override {
    return End(context, drafter_.Close(*request, response));
  }
  grpc::ServerBidiReactor<v1::DraftStreamRequest, v1::DraftStreamResponse>* DraftStream(
      grpc::CallbackServerContext*) override {
    return new NullStream(&drafter_);
  }

 private:
  static grpc::ServerUnaryReactor* End(grpc::CallbackServerContext* context,
                                       const absl::Status& status) {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(rpc::ToGrpcStatus(status));
    return reactor;
  }

  NullDrafter drafter_;
};

class RunningNullServer : public NullServer {
 public:
  explicit RunningNullServer(const NullServerOptions& options)
      : service_(options), address_(options.listen) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(options.listen, grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
    server_ = builder.BuildAndStart();
    if (!absl::StartsWith(address_, "unix:")) {
      address_ = absl::StrCat(address_.substr(0, address_.rfind(':')), ":", port);
    }
  }
  ~RunningNullServer() override {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  bool listens() const { return server_ != nullptr; }
  const std::string& address() const override { return address_; }

 private:
  NullService service_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<NullServer>> NullServer::Start(const NullServerOptions& options) {
  auto server = std::make_unique<RunningNullServer>(options);
  if (server->listens()) return server;
  return absl::UnavailableError(absl::StrCat(
      "cannot listen on ", options.listen,
      "; expected an address of this machine with a free port; give another --listen"));
}

}  // namespace aerie::loadtest
