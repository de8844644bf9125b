// The null server is server enough to be tested against, and the tester counts right on it.
#include "client/loadtest/null_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/loadtest/load_test.h"

namespace aerie::loadtest {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class NullServerTest : public ::testing::TestWithParam<TransportKind> {
 protected:
  void SetUp() override {
    auto server = NullServer::Start({});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    options_.address = server_->address();
    options_.transport = GetParam();
    options_.sessions = LoadProfile::Constant(3);
    options_.requests = 6;
    options_.rounds = 20;
    options_.deadline = absl::Seconds(60);
  }
  LoadOptions options_;
  std::unique_ptr<NullServer> server_;
};

INSTANTIATE_TEST_SUITE_P(Transports, NullServerTest,
                         ::testing::Values(TransportKind::kUnary, TransportKind::kStream),
                         [](const auto& test) {
                           return test.param == TransportKind::kUnary ? "Unary" : "Stream";
                         });

TEST_P(NullServerTest, CountsWhatItsSessionsDo) {
  options_.accept = AcceptProcess::ByChance({0.8, 0.5});
  auto test = LoadTest::Prepare(options_);
  ASSERT_TRUE(test.ok()) << test.status();
  const Report report = (*test)->Run(nullptr);
  EXPECT_EQ(report.result.whole.sessions_compared, 6);
  EXPECT_EQ(report.result.whole.sure.acceptance.drafts(), 6 * 21);
  EXPECT_THAT(report.result.whole.differences, IsEmpty());
  EXPECT_EQ(Judge(report).exit_code, 0) << report.result.whole.first_error;
}

TEST_P(NullServerTest, RefusesTreesByName) {
  options_.tree = TreeShape{.depth = 3, .top_k = 2, .total_tokens = 6};
  auto test = LoadTest::Prepare(options_);
  ASSERT_TRUE(test.ok()) << test.status();
  const Report report = (*test)->Run(nullptr);
  EXPECT_THAT(report.result.whole.first_error, HasSubstr("a tree was asked of a null server"));
  EXPECT_EQ(Judge(report).exit_code, 1);
}

TEST(NullServerAddressTest, SaysThatItCannotListen) {
  const auto server = NullServer::Start({.listen = "unix:/nonexistent/folder/socket"});
  EXPECT_EQ(server.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(server.status().message()), HasSubstr("--listen"));
}

}  // namespace
}  // namespace aerie::loadtest
