#include <string>
#include <utility>
#include <vector>

#include "client/admin/admin_commands.h"
#include "client/admin/admin_flags.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/transport/in_process_server.h"
#include "tests/testing/status_matchers.h"

namespace aerie::admin {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(AdminFlagsTest, TakesFlagsBeforeAndBehindTheCommand) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--json", "--timeout", "2s", "wiring", "--client", "a"},
        std::vector<std::string>{"wiring", "--client", "a", "--json", "--timeout=2s"}}) {
    const auto options = ParseAdminFlags(words);
    ASSERT_THAT(options, IsOk());
    EXPECT_EQ(options->command, Command::kWiring);
    EXPECT_TRUE(options->json);
    EXPECT_EQ(options->timeout, absl::Seconds(2));
    EXPECT_EQ(options->client, "a");
  }
}

TEST(AdminFlagsTest, NamesWhatItCannotRead) {
  for (const auto& [words, message] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{}, "there is no command"},
           {{"dance"}, "dance"},
           {{"health", "info"}, "info"},
           {{"health", "--client", "a"}, "--client"},
           {{"health", "--timeout", "0s"}, "--timeout is \"0s\""},
           {{"health", "--timeout", "5"}, "--timeout is \"5\""}}) {
    const auto options = ParseAdminFlags(words);
    EXPECT_THAT(options, StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(std::string(options.status().message()),
                AllOf(HasSubstr(message), HasSubstr("expected")));
  }
}

TEST(AdminFlagsTest, HelpTellsCommandsAndExitCodes) {
  const auto options = ParseAdminFlags({"--help"});
  ASSERT_THAT(options, IsOk());
  EXPECT_THAT(*options->print, AllOf(HasSubstr("log-level"), HasSubstr("Exit codes: 0"),
                                     HasSubstr("--admin-address")));
}

class AdminCommandsTest : public ::testing::Test {
 protected:
  Outcome Ask(Command command, bool json = false) {
    return admin::Run({.command = command,
                       .address = server_.address(),
                       .admin_address = admin_->addresses().front(),
                       .timeout = absl::Seconds(60),
                       .json = json});
  }
  Outcome WiringOf(std::vector<WiringReport> reports) {
    service_.Serve({.wiring_reports = [reports = std::move(reports)] { return reports; }});
    return Ask(Command::kWiring);
  }
  static std::unique_ptr<GrpcServer> Start(AdminServiceImpl* service) {
    GrpcServerOptions options;
    options.listen = {"127.0.0.1:0"};
    auto server = GrpcServer::Start(options, service);
    EXPECT_THAT(server, IsOk());
    return *std::move(server);
  }

  InProcessServer server_;
  AdminServiceImpl service_;
  std::unique_ptr<GrpcServer> admin_ = Start(&service_);
};

WiringReport Report(WiringState state) {
  WiringReport report{.client = "blue\x1b[2J", .target = "model"};
  report.state = state;
  report.since = absl::FromUnixSeconds(1700000000);
  report.verdict = "captures 0 and 1 look swapped; check the order";
  report.rows = 99;
  report.places.push_back({.declared = Capture::Boundary(2),
                           .looks_like = Capture::Boundary(3),
                           .position = 0.96,
                           .size = 1.1});
  return report;
}

TEST_F(AdminCommandsTest, ExitCodesFollowTheWorstWiring) {
  EXPECT_EQ(WiringOf({Report(WiringState::kOk)}).code, kDone);
}
TEST_F(AdminCommandsTest, AWrongWiringIsExplainedAndExitsWith3) {
  const Outcome outcome = WiringOf({Report(WiringState::kOk), Report(WiringState::kWrong)});
  EXPECT_EQ(outcome.code, kWiringWrong);
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("worst: wrong"), HasSubstr("since 2023-11-14T22:13:20Z"),
                    HasSubstr("look swapped"),
                    HasSubstr("declared boundary 2, looks like boundary 3, position 0.96"),
                    // What a client calls itself must not reach the terminal as it stands.
                    Not(HasSubstr("\x1b"))));
}
TEST_F(AdminCommandsTest, AnOpenQuestionExitsWith4) {
  EXPECT_EQ(WiringOf({Report(WiringState::kSuspect)}).code, kWiringOpen);
}
TEST_F(AdminCommandsTest, WithoutASessionYetTheWiringIsOpen) {
  const Outcome outcome = WiringOf({});
  EXPECT_EQ(outcome.code, kWiringOpen);
  EXPECT_THAT(outcome.out, HasSubstr("no session was opened yet"));
}

TEST_F(AdminCommandsTest, TheServersOwnWordsSayWhatToDo) {
  service_.Serve({});
  const Outcome outcome = Ask(Command::kWiring);
  EXPECT_EQ(outcome.code, kNotAsked);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("--wiring-guard=alert"));
}

TEST_F(AdminCommandsTest, HealthFollowsTheServer) {
  server_.server().SetServing(true);
  EXPECT_EQ(Ask(Command::kHealth).code, kDone);
  server_.server().SetServing(false);
  const Outcome outcome = Ask(Command::kHealth, /*json=*/true);
  EXPECT_EQ(outcome.code, kNotServing);
  EXPECT_EQ(outcome.out, "{\"status\":\"NOT_SERVING\"}\n");
}

TEST_F(AdminCommandsTest, NamesAnAddressWhereNobodyIs) {
  const std::string address = admin_->addresses().front();
  admin_.reset();
  const Outcome outcome = admin::Run({.command = Command::kLogLevel, .admin_address = address});
  EXPECT_EQ(outcome.code, kNotAsked);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr(address), HasSubstr("compare --admin-address")));
}

}  // namespace
}  // namespace aerie::admin
