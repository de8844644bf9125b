// Every method of AdminService asks who calls, those that come later included: they are read from
// the contract.
#include <sys/stat.h>

#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "aerie/v1/admin.grpc.pb.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "server/transport/admin_service.h"
#include "server/transport/grpc_server.h"

namespace aerie {
namespace {

class AdminAccessTest : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(file_)
        << "draft worker WWWWWWWWWWWWWWWWWWWWWWWW\nadmin boss BBBBBBBBBBBBBBBBBBBBBBBB\n";
    chmod(file_.c_str(), 0600);
    GrpcServerOptions options;
    options.listen = {"127.0.0.1:0"};
    options.security.token_file = file_;
    absl::StatusOr<std::unique_ptr<GrpcServer>> server = GrpcServer::Start(options, &service_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ =
        grpc::CreateChannel(server_->addresses().front(), grpc::InsecureChannelCredentials());
  }

  // What a call with an empty request is answered with; an empty token: none is sent.
  grpc::StatusCode Call(const google::protobuf::MethodDescriptor& method,
                        const std::string& token) {
    grpc::ClientContext context;
    if (!token.empty()) context.AddMetadata("authorization", absl::StrCat("Bearer ", token));
    const grpc::Slice nothing;  // a message of no bytes, unlike no message
    const grpc::ByteBuffer empty(&nothing, 1);
    grpc::CompletionQueue queue;
    const std::string path = absl::StrCat("/", method.service()->full_name(), "/", method.name());
    auto call = grpc::GenericStub(channel_).PrepareUnaryCall(&context, path, empty, &queue);
    call->StartCall();
    grpc::ByteBuffer response;
    grpc::Status status;
    call->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return status.error_code();
  }

  const std::string file_ = testing::TempDir() + "admin_access_tokens";
  AdminServiceImpl service_;
  std::unique_ptr<GrpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(AdminAccessTest, IsAskedForByEveryMethod) {
  const auto* service =
      v1::GetWiringReportRequest::descriptor()->file()->FindServiceByName("AdminService");
  ASSERT_NE(service, nullptr);
  for (int i = 0; i < service->method_count(); ++i) {
    const google::protobuf::MethodDescriptor& method = *service->method(i);
    EXPECT_EQ(Call(method, ""), grpc::StatusCode::UNAUTHENTICATED) << method.name();
    EXPECT_EQ(Call(method, "nobody's"), grpc::StatusCode::UNAUTHENTICATED) << method.name();
    EXPECT_EQ(Call(method, "WWWWWWWWWWWWWWWWWWWWWWWW"), grpc::StatusCode::PERMISSION_DENIED)
        << method.name();
    const grpc::StatusCode admitted = Call(method, "BBBBBBBBBBBBBBBBBBBBBBBB");
    EXPECT_NE(admitted, grpc::StatusCode::UNAUTHENTICATED) << method.name();
    EXPECT_NE(admitted, grpc::StatusCode::PERMISSION_DENIED) << method.name();
  }
}

}  // namespace
}  // namespace aerie
