#include "tests/client/test_server.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "common/check.h"

namespace aerie {

TestServer::TestServer(grpc::Service* service) : service_(service) {
  std::string pattern = "/tmp/aerie-client-test-XXXXXX";
  AERIE_CHECK(mkdtemp(pattern.data()) != nullptr) << "no temporary folder";
  folder_ = pattern;
  address_ = absl::StrCat("unix:", folder_, "/socket");
  Start();
}

TestServer::~TestServer() {
  Stop();
  unlink(absl::StrCat(folder_, "/socket").c_str());
  rmdir(folder_.c_str());
}

void TestServer::Start() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
  builder.RegisterService(service_);
  server_ = builder.BuildAndStart();
  AERIE_CHECK(server_ != nullptr) << "cannot listen on " << address_;
}

void TestServer::Stop() {
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  server_.reset();
}

}  // namespace aerie
