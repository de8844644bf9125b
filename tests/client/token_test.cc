// A client's token against a server that asks for one: both transports, and a file that changes.
#include <sys/stat.h>

#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/draft_client.h"
#include "common/check.h"
#include "common/error_detail.h"
#include "common/rpc/channel_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/transport/access_control.h"
#include "tests/server/transport/in_process_server.h"
#include "tests/testing/sequences.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kFirst[] = "first-token-0123456789";
constexpr char kSecond[] = "second-token-0123456789";

class TokenTest : public ::testing::TestWithParam<TransportKind> {
 protected:
  TokenTest() {
    WriteBook(kFirst);
    WriteToken(kFirst);
    auto access = AccessControl::Create({.token_file = book_});
    AERIE_CHECK(access.ok()) << access.status().ToString();
    server_.service().Guard(*std::move(access));
  }

  void WriteBook(const std::string& token) {
    std::ofstream(book_) << "draft worker " << token << "\n";
    chmod(book_.c_str(), 0600);
  }
  void WriteToken(const std::string& text) { std::ofstream(token_) << text << "\n"; }

  std::unique_ptr<DraftClient> Client() {
    ClientOptions options;
    options.transport = GetParam();
    options.deadline = absl::Seconds(60);
    auto secrets = rpc::ReadChannelFiles({.token_file = token_});
    AERIE_CHECK(secrets.ok()) << secrets.status().ToString();
    options.secrets = *std::move(secrets);
    auto client = DraftClient::Create(server_.address(), options);
    AERIE_CHECK(client.ok()) << client.status().ToString();
    return *std::move(client);
  }

  // Of a client that has made no stream yet.
  static absl::Status Open(DraftClient& client) {
    return client.Open(FittingManifest(), {}).status();
  }

 private:
  // The names of parameterised tests have slashes in them.
  const std::string prefix_ = absl::StrCat(
      ::testing::TempDir(),
      absl::StrReplaceAll(::testing::UnitTest::GetInstance()->current_test_info()->name(),
                          {{"/", "_"}}));
  const std::string book_ = prefix_ + "_book", token_ = prefix_ + "_token";
  InProcessServer server_;
};

INSTANTIATE_TEST_SUITE_P(Transports, TokenTest,
                         ::testing::Values(TransportKind::kUnary, TransportKind::kStream),
                         [](const auto& test) {
                           return test.param == TransportKind::kUnary ? "Unary" : "Stream";
                         });

TEST_P(TokenTest, OpensWhatTheServerGuards) { EXPECT_THAT(Open(*Client()), IsOk()); }

TEST_P(TokenTest, CarriesTheTokenThatItsFileHasNow) {
  const std::unique_ptr<DraftClient> client = Client();
  ASSERT_THAT(client->ServerInfo(), IsOk());
  WriteBook(kSecond);
  WriteToken(kSecond);
  EXPECT_THAT(Open(*client), IsOk());
}

TEST_P(TokenTest, KeepsTheLastTokenWhileTheFileHoldsNone) {
  const std::unique_ptr<DraftClient> client = Client();
  WriteToken("two words");
  EXPECT_THAT(Open(*client), IsOk());
}

TEST_P(TokenTest, IsToldWhatToDoWhenTheTokenIsOutOfDate) {
  const std::unique_ptr<DraftClient> client = Client();
  // Which is kept: the refusal is that of the opening itself, or of its stream.
  ASSERT_THAT(client->ServerInfo(), IsOk());
  WriteBook(kSecond);
  const absl::Status refused = Open(*client);
  EXPECT_THAT(refused, Refuses(absl::StatusCode::kUnauthenticated, kReasonUnauthenticated));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("the call's token is not known; expected"));
  EXPECT_THAT(std::string(refused.message()), Not(HasSubstr(kFirst)));
}

}  // namespace
}  // namespace aerie
