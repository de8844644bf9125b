// What may listen on addresses that other hosts can reach, and what is said of it.
#include "server/transport/security_options.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(SecurityOptionsTest, RefusesAPublicAddressUnlessSomethingProtectsItOrSomebodyInsists) {
  const std::vector<std::string> listen = {"127.0.0.1:1", "10.0.0.1:1"};
  const absl::Status refused = CheckExposure({}, "--listen", listen);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument));
  for (const char* part : {"--listen 10.0.0.1:1", "--tls-cert", "--token-file", "--insecure"}) {
    EXPECT_THAT(std::string(refused.message()), HasSubstr(part));
  }
  EXPECT_THAT(CheckExposure({}, "--listen", {"127.0.0.1:1"}), IsOk());
  EXPECT_THAT(CheckExposure({.tls_cert = "c"}, "--listen", listen), IsOk());
  EXPECT_THAT(CheckExposure({.token_file = "t"}, "--listen", listen), IsOk());
  EXPECT_THAT(CheckExposure({.insecure = true}, "--listen", listen), IsOk());
}

TEST(SecurityOptionsTest, WarnsOfTokensInTheClearAndOfListenersThatAskNobody) {
  const std::vector<std::string> listen = {"unix:/run/x.sock", "10.0.0.1:1"};
  EXPECT_THAT(ExposureWarnings({.token_file = "t"}, "--listen", listen),
              ElementsAre(HasSubstr("takes tokens in the clear")));
  EXPECT_THAT(ExposureWarnings({.insecure = true}, "--listen", listen), SizeIs(1));
  EXPECT_THAT(ExposureWarnings({.tls_cert = "c"}, "--listen", listen),
              ElementsAre(HasSubstr("serves whoever can reach it, encrypted")));
  EXPECT_THAT(ExposureWarnings({.tls_cert = "c", .token_file = "t"}, "--listen", listen),
              IsEmpty());
  EXPECT_THAT(ExposureWarnings({.tls_cert = "c", .tls_client_ca = "a"}, "--listen", listen),
              IsEmpty());
}

TEST(SecurityOptionsTest, WantsACertificateAndItsKeyTogether) {
  EXPECT_THAT(SecurityOptions{.tls_cert = "c"}.Validate(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(SecurityOptions{.tls_key = "k"}.Validate(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT((SecurityOptions{.tls_client_ca = "a"}.Validate()),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT((SecurityOptions{.tls_cert = "c", .tls_key = "k"}.Validate()), IsOk());
}

}  // namespace
}  // namespace aerie
