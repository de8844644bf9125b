// Listeners, health, reflection and limits of the server around the service.
#include "server/transport/grpc_server.h"

#include <unistd.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::unique_ptr<GrpcServer> Start(DraftServiceImpl* service, GrpcServerOptions options) {
  auto server = GrpcServer::Start(options, service);
  EXPECT_THAT(server, IsOk());
  return *std::move(server);
}

std::unique_ptr<GrpcServer> Start(DraftServiceImpl* service) {
  GrpcServerOptions options;
  options.listen = {"127.0.0.1:0"};
  return Start(service, options);
}

std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

grpc::ByteBuffer BufferOf(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

// One message to and one from a method whose messages are not compiled in; bytes as protobuf writes
// them.
grpc::Status CallRaw(const std::string& address, const std::string& method,
                     const std::string& request, std::string* response) {
  grpc::GenericStub stub(ChannelTo(address));
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  auto stream = stub.PrepareCall(&context, method, &queue);
  grpc::ByteBuffer reply;
  grpc::Status status;
  void* tag = nullptr;
  bool ok = false;
  const auto next = [&] { EXPECT_TRUE(queue.Next(&tag, &ok)); };
  stream->StartCall(nullptr);
  next();
  stream->Write(BufferOf(request), nullptr);
  next();
  stream->WritesDone(nullptr);
  next();
  stream->Read(&reply, nullptr);
  next();
  if (ok) *response = BytesOf(reply);
  stream->Finish(&status, nullptr);
  next();
  return status;
}

// Of grpc.health.v1: request field 1 is the service's name, response field 1 the status (1 SERVING,
// 2 NOT_SERVING).
std::string Health(const std::string& address, const std::string& service) {
  std::string request;
  if (!service.empty())
    request = absl::StrCat("\x0a", std::string(1, char(service.size())), service);
  std::string response;
  const grpc::Status status = CallRaw(address, "/grpc.health.v1.Health/Check", request, &response);
  if (!status.ok()) return absl::StrCat("code ", status.error_code());
  if (response == "\x08\x01") return "SERVING";
  if (response == "\x08\x02") return "NOT_SERVING";
  return response;
}

TEST(GrpcServerTest, ReportsTheChosenPortAndEveryAddress) {
  DraftServiceImpl service{ServiceLimits{}};
  const std::string path = absl::StrCat(::testing::TempDir(), "aerie-", getpid(), ".sock");
  GrpcServerOptions options;
  options.listen = {"127.0.0.1:0", absl::StrCat("unix:", path)};
  auto server = Start(&service, options);
  ASSERT_EQ(server->addresses().size(), 2u);
  EXPECT_THAT(server->addresses()[0], ::testing::MatchesRegex("127\\.0\\.0\\.1:[1-9][0-9]*"));
  EXPECT_EQ(server->addresses()[1], absl::StrCat("unix:", path));
  for (const std::string& address : server->addresses()) {
    EXPECT_EQ(Health(address, ""), "NOT_SERVING") << address;
  }
}

TEST(GrpcServerTest, NamesTheAddressThatIsTakenAndNoOther) {
  DraftServiceImpl service{ServiceLimits{}};
  auto first = Start(&service);
  const std::string taken = first->addresses().front();
  DraftServiceImpl other{ServiceLimits{}};
  GrpcServerOptions options;
  options.listen = {"localhost:0", taken};
  const absl::Status status = GrpcServer::Start(options, &other).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat("cannot listen on ", taken, ";")));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("localhost")));
}

TEST(GrpcServerTest, NamesAnAddressThatIsNotOfThisHost) {
  DraftServiceImpl service{ServiceLimits{}};
  GrpcServerOptions options;
  options.listen = {"192.0.2.1:1"};
  EXPECT_THAT(std::string(GrpcServer::Start(options, &service).status().message()),
              HasSubstr("192.0.2.1:1"));
}

TEST(GrpcServerTest, HealthFollowsServing) {
  DraftServiceImpl service{ServiceLimits{}};
  auto server = Start(&service);
  const std::string address = server->addresses().front();
  for (const std::string name : {"", "aerie.v1.DraftService"}) {
    EXPECT_EQ(Health(address, name), "NOT_SERVING") << name;
  }
  server->SetServing(true);
  for (const std::string name : {"", "aerie.v1.DraftService"}) {
    EXPECT_EQ(Health(address, name), "SERVING") << name;
  }
  server->SetServing(false);
  for (const std::string name : {"", "aerie.v1.DraftService"}) {
    EXPECT_EQ(Health(address, name), "NOT_SERVING") << name;
  }
  EXPECT_EQ(Health(address, "other.Service"), absl::StrCat("code ", grpc::StatusCode::NOT_FOUND));
}

// Of grpc.reflection.v1alpha: request field 7 asks for the list of services.
grpc::Status ListServices(const std::string& address, std::string* response) {
  return CallRaw(address, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                 std::string("\x3a\x00", 2), response);
}

TEST(GrpcServerTest, ReflectionListsTheServiceUnlessItIsOff) {
  DraftServiceImpl service{ServiceLimits{}};
  {
    auto server = Start(&service);
    std::string response;
    EXPECT_TRUE(ListServices(server->addresses().front(), &response).ok());
    EXPECT_THAT(response, HasSubstr("aerie.v1.DraftService"));
    EXPECT_THAT(response, HasSubstr("grpc.health.v1.Health"));
  }
  DraftServiceImpl other{ServiceLimits{}};
  GrpcServerOptions options;
  options.listen = {"127.0.0.1:0"};
  options.reflection = false;
  auto server = Start(&other, options);
  std::string response;
  EXPECT_EQ(ListServices(server->addresses().front(), &response).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

struct BadOptionsCase {
  const char* name;
  std::vector<std::string> listen;
  int64_t max_message_bytes;
  const char* message;
};

class GrpcServerOptionsTest : public ::testing::TestWithParam<BadOptionsCase> {};

TEST_P(GrpcServerOptionsTest, NamesFlagValueAndRemedy) {
  GrpcServerOptions options;
  options.listen = GetParam().listen;
  options.max_message_bytes = GetParam().max_message_bytes;
  const absl::Status status = options.Validate();
  EXPECT_THAT(status, Refuses(absl::StatusCode::kInvalidArgument, ""));
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, GrpcServerOptionsTest,
    ::testing::ValuesIn(std::vector<BadOptionsCase>{
        {"NoListener", {}, 65536, "--listen is empty"},
        {"NoPort", {"localhost"}, 65536, "--listen is \"localhost\""},
        {"EmptyPort", {"localhost:"}, 65536, "--listen is \"localhost:\""},
        {"Public", {"localhost:0", "0.0.0.0:0"}, 65536, "--listen 0.0.0.0:0 can be reached"},
        {"SmallMessages", {"localhost:0"}, 65535, "--max-message-bytes is 65535"},
        {"HugeMessages",
         {"localhost:0"},
         (int64_t{1} << 30) + 1,
         "--max-message-bytes is 1073741825"},
    }),
    [](const auto& test) { return std::string(test.param.name); });

TEST(GrpcServerOptionsTest, TheDefaultsAreValid) {
  EXPECT_THAT(GrpcServerOptions{}.Validate(), IsOk());
}

}  // namespace
}  // namespace aerie
