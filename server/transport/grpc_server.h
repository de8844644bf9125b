// The gRPC server: listeners, limits, health and reflection around one service.
//
// Drafting and administration have a server each, so that who may reach the one need not reach the
// other. It listens from the start, so that a taken port stops the program before minutes of
// loading; until SetServing(true) health says NOT_SERVING.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/transport/admin_service.h"
#include "server/transport/draft_service.h"
#include "server/transport/security_options.h"

namespace grpc {
class Server;
class ServerCredentials;
}  // namespace grpc

namespace aerie {

struct GrpcServerOptions {
  // host:port (port 0: a free one; IPv6 in brackets) or unix:PATH. At least one.
  std::vector<std::string> listen = {"127.0.0.1:50051"};
  int64_t max_message_bytes = 64 << 20;  // 65536 .. 1 GiB: of one request
  // The service that tells tools such as grpcurl what there is. It asks nobody for a token, so it
  // is not there when tokens are.
  bool reflection = true;
  SecurityOptions security;

  // INVALID_ARGUMENT that names the flag and the value.
  absl::Status Validate() const;
};

class GrpcServer {
 public:
  // `service` must outlive the server. UNAVAILABLE, naming the address, when one cannot be listened
  // on. Files of `options.security` that cannot be used fail as ReadTlsFiles and AccessControl say.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(const GrpcServerOptions& options,
                                                           DraftServiceImpl* service);
  // The same for who runs the server; messages say --admin-listen.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(const GrpcServerOptions& options,
                                                           AdminServiceImpl* service);
  // Shuts down with no patience.
  ~GrpcServer();

  // As given, with the ports that were chosen for 0.
  const std::vector<std::string>& addresses() const { return addresses_; }

  // What health answers for "" and for the service.
  void SetServing(bool serving);

  // Takes no more calls; those under way are cancelled at `deadline`. Returns when all have ended.
  // Idempotent.
  void Shutdown(absl::Time deadline);

 private:
  struct Served {
    grpc::Service* service;
    const char* name;
    const char* flag;  // which its listeners come from
    std::function<void(std::shared_ptr<const AccessControl>)> guard;
  };
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(const GrpcServerOptions& options,
                                                           const Served& served);
  using Credentials = std::vector<std::shared_ptr<grpc::ServerCredentials>>;
  GrpcServer(Credentials credentials, std::unique_ptr<grpc::Server> server,
             const char* service_name, std::vector<std::string> addresses);

  const Credentials credentials_;  // handshakes ask them: longer than the server
  std::unique_ptr<grpc::Server> server_;
  const char* const service_name_;
  const std::vector<std::string> addresses_;
};

}  // namespace aerie
