// What --metrics may say, and where a token may go with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/loadtest/flags.h"
#include "client/loadtest/page_address.h"
#include "tests/testing/status_matchers.h"

namespace aerie::loadtest {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::Pair;

struct AddressCase {
  std::string text, url;  // an empty URL: refused
};

TEST(PageAddressTest, IsHostAndPortOrTheirUrl) {
  for (const auto& [text, url] :
       std::vector<AddressCase>{{"127.0.0.1:9464", "http://127.0.0.1:9464/metrics"},
                                {"http://page.example:80/", "http://page.example:80/metrics"},
                                {"https://page.example:9464", "https://page.example:9464/metrics"},
                                {"https://[::1]:9464/metrics", "https://[::1]:9464/metrics"},
                                {"page.example", ""},
                                {"https://page.example", ""},
                                {"page.example:", ""},
                                {"page.example:0", ""},
                                {"page.example:65536", ""},
                                {"page.example:+80", ""},
                                {":9464", ""},
                                {"::1:9464", ""},
                                {"[]:9464", ""},
                                {"ftp://page.example:9464", ""},
                                {"https://user@page.example:9464", ""},
                                {"https://page.example:9464/other", ""},
                                {"https://page.example/metrics:9464", ""},
                                {"unix:/run/page.sock", ""}}) {
    const auto address = PageAddress::Parse(text);
    if (!url.empty()) {
      ASSERT_THAT(address, IsOk()) << text;
      EXPECT_EQ(address->Url(), url);
      continue;
    }
    EXPECT_THAT(address, StatusIs(absl::StatusCode::kInvalidArgument)) << text;
    EXPECT_THAT(std::string(address.status().message()),
                AllOf(HasSubstr(absl::StrCat("--metrics is '", text, "'; expected")),
                      HasSubstr("write HOST:PORT")));
  }
}

// The line of a run, or of a sweep.
Ending Parse(std::vector<std::string> arguments, LoadOptions* options = nullptr) {
  std::vector<const char*> argv = {"aerie-load"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  const auto count = static_cast<int>(argv.size());
  if (arguments.empty() || arguments[0] != "sweep") {
    const CommandLine line = ParseCommandLine(count, argv.data());
    if (options != nullptr) *options = line.options;
    return line.ending;
  }
  const SweepLine line = ParseSweep(count - 1, argv.data() + 1);
  if (options != nullptr) *options = line.options;
  return line.ending;
}

TEST(PageFlagsTest, AreThoseOfARunAndOfASweep) {
  for (std::vector<std::string> line :
       {std::vector<std::string>{}, {"sweep", "--over", "k", "--values", "1,2"}}) {
    for (const char* word : {"--metrics", "https://page.example:9464", "--metrics-token-file", "m",
                             "--token-file", "t", "--tls-ca", "ca"}) {
      line.push_back(word);
    }
    LoadOptions options;
    const Ending ending = Parse(line, &options);
    ASSERT_EQ(ending.exit_code, std::nullopt) << ending.text;
    EXPECT_EQ(options.metrics, "https://page.example:9464");
    EXPECT_THAT(options.MetricsToken(), Pair(std::string("--metrics-token-file"), "m"));
    EXPECT_EQ(options.files.tls_ca, "ca");
    const Ending help = Parse({line[0] == "sweep" ? "sweep" : "--quiet", "--help"});
    EXPECT_THAT(help.text,
                AllOf(HasSubstr("--metrics HOST:PORT"), HasSubstr("--metrics-token-file FILE"),
                      HasSubstr("https://HOST:PORT")));
  }
}

TEST(PageFlagsTest, TakeTheTokenOfCallsForWantOfAnother) {
  LoadOptions options;
  ASSERT_EQ(Parse({"--metrics", "localhost:9464", "--token-file", "t"}, &options).exit_code,
            std::nullopt);
  EXPECT_THAT(options.MetricsToken(), Pair(std::string("--token-file"), "t"));
}

TEST(PageFlagsTest, RefuseATokenForNoPageAndAPageThatIsNone) {
  for (const auto& [line, message] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--metrics-token-file", "m"}, "--metrics-token-file is given; only --metrics asks"},
           {{"--metrics", "9464"}, "--metrics is '9464'; expected where the server's page is"}}) {
    const Ending ending = Parse(line);
    EXPECT_THAT(ending.exit_code, Optional(2)) << message;
    EXPECT_THAT(ending.text, HasSubstr(message));
  }
}

// Of aerie-load with these flags.
struct TokenCase {
  std::string name;
  std::vector<std::string> flags;
  bool refused;
};

class PageTokenTest : public ::testing::TestWithParam<TokenCase> {};

TEST_P(PageTokenTest, GoesInTheClearOnlyToThisHostOrWhereThatOfCallsDoes) {
  const Ending ending = Parse(GetParam().flags);
  if (!GetParam().refused) {
    EXPECT_EQ(ending.exit_code, std::nullopt) << ending.text;
    return;
  }
  EXPECT_THAT(ending.exit_code, Optional(2));
  EXPECT_THAT(ending.text, AllOf(HasSubstr("--metrics is far.example:9464; the token of --"),
                                 HasSubstr("would go there in the clear; write https://")));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, PageTokenTest,
    ::testing::ValuesIn(std::vector<TokenCase>{
        {"NoToken", {"--metrics", "far.example:9464"}, false},
        {"Loopback", {"--metrics", "127.0.0.1:9464", "--metrics-token-file", "m"}, false},
        {"Tls", {"--metrics", "https://far.example:9464", "--metrics-token-file", "m"}, false},
        {"ThePagesOwn", {"--metrics", "far.example:9464", "--metrics-token-file", "m"}, true},
        {"ThatOfCallsOverTls",
         {"--metrics", "far.example:9464", "--token-file", "t", "--tls-ca", "ca", "--address",
          "far.example:50051"},
         true},
        {"ThatOfCallsToThisHost",
         {"--metrics", "far.example:9464", "--token-file", "t", "--address", "unix:/run/s"},
         true},
        {"CallsCarryTheirsInTheClear",
         {"--metrics", "far.example:9464", "--metrics-token-file", "m", "--token-file", "t",
          "--address", "far.example:50051"},
         false},
        {"CallsCarryNone",
         {"--metrics", "far.example:9464", "--metrics-token-file", "m", "--address",
          "far.example:50051"},
         true}}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace aerie::loadtest
