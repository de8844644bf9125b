// What an operator is told, over a real server on a free port.
#include "server/transport/admin_service.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "aerie/v1/admin.grpc.pb.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "tests/server/transport/in_process_server.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

WiringReport ReportOf(const std::string& client, WiringState state) {
  WiringReport report{.client = client, .target = "model"};
  report.state = state;
  return report;
}

class AdminServiceTest : public ::testing::Test {
 protected:
  AdminServiceTest() {
    GrpcServerOptions options;
    options.listen = {"127.0.0.1:0"};
    auto server = GrpcServer::Start(options, &service_);
    EXPECT_THAT(server, IsOk());
    server_ = *std::move(server);
    stub_ = v1::AdminService::NewStub(
        grpc::CreateChannel(server_->addresses().front(), grpc::InsecureChannelCredentials()));
  }
  ~AdminServiceTest() override { server_->Shutdown(absl::InfinitePast()); }

  void Serve(std::vector<WiringReport> reports) {
    service_.Serve({.wiring_reports = [reports = std::move(reports)] { return reports; },
                    .rpc_observer = &rpcs_});
  }

  grpc::Status Ask(const std::string& client, v1::GetWiringReportResponse* response) {
    v1::GetWiringReportRequest request;
    request.set_client(client);
    grpc::ClientContext context;
    return stub_->GetWiringReport(&context, request, response);
  }

  RecordingRpcObserver rpcs_;
  AdminServiceImpl service_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<v1::AdminService::Stub> stub_;
};

std::vector<std::string> ClientsOf(const v1::GetWiringReportResponse& response) {
  std::vector<std::string> clients;
  for (const v1::WiringReport& report : response.reports()) clients.push_back(report.client());
  return clients;
}

TEST_F(AdminServiceTest, ListsEverySourceWithTheWorstState) {
  Serve({ReportOf("a", WiringState::kOk), ReportOf("b", WiringState::kWrong),
         ReportOf("c", WiringState::kUnknown)});
  v1::GetWiringReportResponse response;
  ASSERT_TRUE(Ask("", &response).ok());
  EXPECT_THAT(ClientsOf(response), ElementsAre("a", "b", "c"));
  EXPECT_EQ(response.reports(1).state(), v1::WIRING_STATE_WRONG);
  EXPECT_EQ(response.worst(), v1::WIRING_STATE_WRONG);
}

TEST_F(AdminServiceTest, SpeaksOfOneClientWhenAsked) {
  Serve({ReportOf("a", WiringState::kUnknown), ReportOf("b", WiringState::kWrong)});
  v1::GetWiringReportResponse response;
  ASSERT_TRUE(Ask("a", &response).ok());
  EXPECT_THAT(ClientsOf(response), ElementsAre("a"));
  EXPECT_EQ(response.worst(), v1::WIRING_STATE_UNKNOWN) << "of what is listed, not of all";
}

TEST_F(AdminServiceTest, ListsNothingOfAClientThatNeverCame) {
  Serve({ReportOf("a", WiringState::kOk)});
  v1::GetWiringReportResponse response;
  ASSERT_TRUE(Ask("z", &response).ok());
  EXPECT_THAT(ClientsOf(response), IsEmpty());
  EXPECT_EQ(response.worst(), v1::WIRING_STATE_UNKNOWN);
}

TEST_F(AdminServiceTest, SaysThatTheGuardIsOff) {
  service_.Serve({});
  v1::GetWiringReportResponse response;
  const grpc::Status status = Ask("", &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(),
              AllOf(HasSubstr("guard is off"), HasSubstr("--wiring-guard=alert")));
}

TEST_F(AdminServiceTest, AnswersUnavailableWhileTheDrafterLoads) {
  v1::GetWiringReportResponse response;
  EXPECT_EQ(Ask("", &response).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(AdminServiceTest, TellsTheObserverOfEveryCall) {
  Serve({ReportOf("a", WiringState::kOk)});
  v1::GetWiringReportResponse response;
  ASSERT_TRUE(Ask("", &response).ok());
  const RecordingRpcObserver::Counts counts = rpcs_.Of("GetWiringReport");
  EXPECT_EQ(counts.service, kAdminServiceName);
  EXPECT_THAT(counts.handled, ElementsAre(absl::StatusCode::kOk));
  EXPECT_EQ(counts.sent_bytes, static_cast<int64_t>(response.ByteSizeLong()));
}

TEST_F(AdminServiceTest, NamesItsOwnFlagWhenTheAddressIsTaken) {
  GrpcServerOptions options;
  options.listen = server_->addresses();
  AdminServiceImpl other;
  EXPECT_THAT(std::string(GrpcServer::Start(options, &other).status().message()),
              AllOf(HasSubstr(options.listen.front()), HasSubstr("change --admin-listen")));
}

}  // namespace
}  // namespace aerie
