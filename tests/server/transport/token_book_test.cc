// What a token file may say, and that no message shows what may be a token.
#include "server/transport/token_book.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kToken[] = "a-token-of-22-letters!";

TokenBook Read(const std::string& text) {
  absl::StatusOr<TokenBook> book = TokenBook::Parse(text, "tokens");
  EXPECT_THAT(book, IsOk());
  return *std::move(book);
}

TEST(TokenBookTest, FindsWhoHasATokenAndWhatItMayDo) {
  const TokenBook book = Read(std::string("# who\n\n draft,metrics\tworker  ") + kToken + "\r\n");
  const std::optional<KnownCaller> caller = book.FindToken(kToken);
  ASSERT_TRUE(caller.has_value());
  EXPECT_EQ(caller->name, "worker");
  EXPECT_TRUE(caller->May(Role::kDraft));
  EXPECT_TRUE(caller->May(Role::kMetrics));
  EXPECT_FALSE(caller->May(Role::kAdmin));
}

TEST(TokenBookTest, FindsNobodyByAnotherToken) {
  const TokenBook book = Read(std::string("draft worker ") + kToken + "\n");
  for (const char* other :
       {"", "a-token-of-22-letters", "a-token-of-22-letters!!", "A-token-of-22-letters!"}) {
    EXPECT_FALSE(book.FindToken(other).has_value()) << other;
  }
  EXPECT_FALSE(book.FindCertificate("worker").has_value());
}

TEST(TokenBookTest, TakesADigestInTheTokensPlace) {
  // printf %s test-token-0123456 | sha256sum
  const TokenBook book = Read(
      "admin operator sha256:61735f4c382e47e04e695b4238b30b93ff1737be9da8d8c16bc2a69062bfc375\n");
  EXPECT_FALSE(book.FindToken("61735f4c382e47e04e695b4238b30b93ff1737be9da8d8c16bc2a69062bfc375")
                   .has_value());
  EXPECT_TRUE(book.FindToken("test-token-0123456").has_value());
}

TEST(TokenBookTest, KnowsCertificatesByTheirNameAlone) {
  const TokenBook book = Read("draft worker-a certificate\n");
  EXPECT_TRUE(book.FindCertificate("worker-a").has_value());
  EXPECT_FALSE(book.FindCertificate("worker-b").has_value());
  EXPECT_FALSE(book.FindToken("certificate").has_value());
}

TEST(TokenBookTest, LetsANameHaveTwoTokensWhileOneIsReplaced) {
  const TokenBook book = Read("draft w the-old-token-0123456\ndraft w the-new-token-0123456\n");
  EXPECT_TRUE(book.FindToken("the-old-token-0123456").has_value());
  EXPECT_TRUE(book.FindToken("the-new-token-0123456").has_value());
}

TEST(TokenBookTest, RefusesALineByItsNumberWithoutShowingIt) {
  const std::string secret = "Secret-0123456789abcdef";
  for (const std::string& line :
       {"draft " + secret, secret + " worker draft", "draft " + secret + "/ worker-0123456789",
        "draft,root worker " + secret, "draft worker " + secret + " more",
        std::string("draft worker short"), "draft worker sha256:" + secret, ", worker " + secret}) {
    const absl::StatusOr<TokenBook> book = TokenBook::Parse("# one\n" + line + "\n", "tokens");
    ASSERT_THAT(book, StatusIs(absl::StatusCode::kInvalidArgument)) << line;
    const std::string message(book.status().message());
    EXPECT_THAT(message, HasSubstr("token file tokens line 2 "));
    EXPECT_THAT(message, HasSubstr("; expected "));
    EXPECT_THAT(message, Not(HasSubstr(secret)));
  }
}

TEST(TokenBookTest, RefusesAnEmptyFileAndATokenThatTwoHave) {
  EXPECT_THAT(TokenBook::Parse("# nobody\n", "tokens"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(
      TokenBook::Parse("draft a same-token-0123456789\nadmin b same-token-0123456789\n", "tokens"),
      StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace aerie
