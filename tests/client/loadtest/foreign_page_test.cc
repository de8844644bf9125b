// Answers of servers whose page it is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/loadtest/page_reader.h"
#include "tests/testing/status_matchers.h"

namespace aerie::loadtest {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct ForeignAnswer {
  int status;
  std::string body, message;
};

TEST(ForeignPageTest, IsNamedAndNotFollowedElsewhere) {
  httplib::Server server;
  ForeignAnswer answer;
  int elsewhere = 0;
  server.Get("/metrics", [&](const httplib::Request&, httplib::Response& response) {
    response.status = answer.status;
    response.set_header("Location", "/elsewhere");
    response.set_content(answer.body, "text/plain");
  });
  server.Get("/elsewhere", [&](const httplib::Request&, httplib::Response&) { ++elsewhere; });
  LoadOptions options;
  options.metrics = absl::StrCat("127.0.0.1:", server.bind_to_any_port("127.0.0.1"));
  const auto reader = PageReader::Create(options);
  ASSERT_THAT(reader, IsOk());
  std::thread thread([&] { server.listen_after_bind(); });
  for (const ForeignAnswer& next : std::vector<ForeignAnswer>{
           {200, "<html>",
            "answered 200, and the line '<html>' is no number with a name; expected"},
           {302, "", "answered 302; expected the server's metrics page"},
           {404, "a 1\n", "answered 404; expected the server's metrics page"},
           {401, "go\x1b[2Jaway\nnow", "answered 401 (go?[2Jaway); expected a token"},
           {403, std::string(500, 'x'),
            absl::StrCat("answered 403 (", std::string(120, 'x'), "); expected the role")}}) {
    answer = next;
    const auto page = (*reader)->Read();
    EXPECT_THAT(std::string(page.status().message()),
                AllOf(HasSubstr(absl::StrCat("http://", options.metrics, "/metrics: ")),
                      HasSubstr(next.message)));
  }
  EXPECT_EQ(elsewhere, 0);
  server.stop();
  thread.join();
}

}  // namespace
}  // namespace aerie::loadtest
