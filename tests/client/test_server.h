// A gRPC server of a test's own that can be lost and come back at the same address.
#pragma once

#include <grpcpp/server.h>

#include <memory>
#include <string>

namespace aerie {

// Serves a service on a Unix socket of its own, which survives Stop() and Start().
class TestServer {
 public:
  explicit TestServer(grpc::Service* service);
  ~TestServer();

  void Start();
  // Cuts all connections.
  void Stop();
  const std::string& address() const { return address_; }

 private:
  grpc::Service* const service_;
  std::string folder_, address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace aerie
