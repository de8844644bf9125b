#include "server/metrics/exporter.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/metrics/metric_page.h"
#include "server/metrics/prometheus_observer.h"
#include "server/metrics/server_metrics.h"
#include "tests/server/metrics/exposition.h"

namespace aerie {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A connection to the exporter that speaks HTTP by hand.
class Connection {
 public:
  explicit Connection(int32_t port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~Connection() { close(socket_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool connected() const { return connected_; }

  // Whether the exporter still waits for what we have to say.
  bool IsWaitedFor() const {
    char byte = 0;
    return recv(socket_, &byte, 1, MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }

  // The whole answer, up to the end of the connection.
  std::string Ask(const std::string& request) {
    EXPECT_EQ(send(socket_, request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    std::string answer;
    char buffer[4096];
    for (ssize_t got = 0; (got = recv(socket_, buffer, sizeof(buffer), 0)) > 0;) {
      answer.append(buffer, static_cast<size_t>(got));
    }
    return answer;
  }

 private:
  int socket_;
  bool connected_ = false;
};

std::string Get(int32_t port, const std::string& path, const std::string& method = "GET") {
  Connection connection(port);
  EXPECT_TRUE(connection.connected());
  return connection.Ask(method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

std::string Body(const std::string& answer) { return answer.substr(answer.find("\r\n\r\n") + 4); }

class ExporterTest : public testing::Test {
 protected:
  ExporterTest() { page_->Add("demo", observer_.metrics()); }

  PrometheusObserver observer_{PrometheusOptions{}};
  ServerMetrics server_{{}};
  const std::shared_ptr<MetricPage> page_ = std::make_shared<MetricPage>(server_.metrics());
};

TEST_F(ExporterTest, ServesWhatTheObserverCounted) {
  auto exporter = StartExporter({.listen = "127.0.0.1:0"}, page_);
  ASSERT_TRUE(exporter.ok()) << exporter.status();
  observer_.OnSessionOpened();
  observer_.OnRejected(RejectReason::kShape);
  const std::string answer = Get((*exporter)->port(), "/metrics");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  const Exposition scrape(Body(answer));
  EXPECT_EQ(scrape.Sum("aerie_sessions"), 1);
  EXPECT_EQ(scrape.Sum("aerie_rejected_total", {{"reason", "shape"}}), 1);
  EXPECT_GT(scrape.Sum("process_resident_memory_bytes"), 0);
}

TEST_F(ExporterTest, TellsTheBoundPortWhenAskedForAnyFreeOne) {
  auto exporter = StartExporter({.listen = "localhost:0"}, page_);
  ASSERT_TRUE(exporter.ok()) << exporter.status();
  EXPECT_GT((*exporter)->port(), 0);
  EXPECT_EQ((*exporter)->address(), "localhost:" + std::to_string((*exporter)->port()));
  EXPECT_TRUE(Connection((*exporter)->port()).connected());
}

TEST_F(ExporterTest, SaysWhichAddressIsTakenAndWhatToDo) {
  auto first = StartExporter({.listen = "127.0.0.1:0"}, page_);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = StartExporter({.listen = (*first)->address()}, page_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()),
              AllOf(HasSubstr((*first)->address()), HasSubstr("Address already in use"),
                    HasSubstr("expected a free port"), HasSubstr("turn the metrics off")));
  // The first one goes on.
  EXPECT_THAT(Get((*first)->port(), "/metrics"), StartsWith("HTTP/1.1 200"));
}

TEST_F(ExporterTest, RefusesAnAddressOfAnotherMachine) {
  // From the block kept for documentation, so no machine has it.
  const auto exporter = StartExporter({.listen = "192.0.2.1:0"}, page_);
  EXPECT_EQ(exporter.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(exporter.status().message()),
              AllOf(HasSubstr("192.0.2.1:0"), HasSubstr("Cannot assign requested address")));
}

TEST_F(ExporterTest, RefusesWhatIsNoAddressAndSaysWhy) {
  for (const auto& [listen, why] : std::vector<std::pair<std::string, std::string>>{
           {"", "has no port"},
           {"9464", "has no port"},
           {":9464", "has no host"},
           {"127.0.0.1:", "has port ''"},
           {"127.0.0.1:port", "has port 'port'"},
           {"127.0.0.1:65536", "has port '65536'"},
           {"127.0.0.1:-1", "has port '-1'"},
           {"127.0.0.1:99999999999999999999", "has port '99999999999999999999'"},
           {"127.0.0.1:9464s", "has port '9464s'"},
           {"127.0.0.1:1,127.0.0.1:2", "has an IPv6 host"},
           {"[::1]:9464", "has an IPv6 host"},
           {"no such host:0", "cannot be resolved"}}) {
    const auto exporter = StartExporter({.listen = listen}, page_);
    EXPECT_EQ(exporter.status().code(), absl::StatusCode::kInvalidArgument) << listen;
    EXPECT_THAT(std::string(exporter.status().message()),
                AllOf(HasSubstr("'" + listen + "'"), HasSubstr(why),
                      HasSubstr("expected host:port"), HasSubstr("give one like")));
  }
}

TEST_F(ExporterTest, AnswersNothingButReadsOfTheMetrics) {
  auto exporter = StartExporter({.listen = "127.0.0.1:0"}, page_);
  ASSERT_TRUE(exporter.ok()) << exporter.status();
  const int32_t port = (*exporter)->port();
  EXPECT_THAT(Get(port, "/"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Get(port, "/metrics/more"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Get(port, "/../etc/passwd"), Not(HasSubstr("root:")));
  EXPECT_THAT(Get(port, "/metrics", "DELETE"), StartsWith("HTTP/1.1 405"));
  const std::string head = Get(port, "/metrics", "HEAD");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(Body(head), "");
}

TEST_F(ExporterTest, AnswersOnlyThoseThatItsGuardLetsIn) {
  const ScrapeGuard guard = [](const Scraper& scraper) -> absl::Status {
    EXPECT_EQ(scraper.certificate, "");
    if (!scraper.authorization) return absl::UnauthenticatedError("no token; expected one");
    if (*scraper.authorization == "Bearer right") return absl::OkStatus();
    return absl::PermissionDeniedError("not yours; expected another");
  };
  auto exporter = StartExporter({.listen = "127.0.0.1:0", .guard = guard}, page_);
  ASSERT_TRUE(exporter.ok()) << exporter.status();
  const auto get = [&](const std::string& header) {
    Connection connection((*exporter)->port());
    return connection.Ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + header + "\r\n");
  };
  const std::string stranger = get("");
  EXPECT_THAT(stranger, StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(stranger, HasSubstr("WWW-Authenticate: Bearer"));
  EXPECT_EQ(Body(stranger), "no token; expected one\n");
  const std::string wrong = get("Authorization: Bearer wrong\r\n");
  EXPECT_THAT(wrong, StartsWith("HTTP/1.1 403"));
  EXPECT_EQ(Body(wrong), "not yours; expected another\n");
  for (const std::string& answer : {stranger, wrong}) EXPECT_THAT(answer, Not(HasSubstr("aerie_")));
  EXPECT_THAT(get("authorization: Bearer right\r\n"), StartsWith("HTTP/1.1 200"));
}

TEST_F(ExporterTest, AnswersWhileAnotherReaderIsStuck) {
  auto exporter = StartExporter({.listen = "127.0.0.1:0"}, page_);
  ASSERT_TRUE(exporter.ok()) << exporter.status();
  const Connection silent((*exporter)->port());
  ASSERT_TRUE(silent.connected());
  EXPECT_THAT(Get((*exporter)->port(), "/metrics"), StartsWith("HTTP/1.1 200"));
  EXPECT_TRUE(silent.IsWaitedFor()) << "it was answered only once the other one was given up";
}

TEST_F(ExporterTest, GivesConsistentPagesWhileCallsAreCounted) {
  auto exporter = StartExporter({.listen = "127.0.0.1:0"}, page_);
  ASSERT_TRUE(exporter.ok()) << exporter.status();
  std::thread engine([this] {
    for (int i = 0; i < 20000; ++i) observer_.OnPass({.sessions = i % 8 + 1});
  });
  double last = 0;
  for (int i = 0; i < 5; ++i) {
    const Exposition scrape(Body(Get((*exporter)->port(), "/metrics")));
    const double count = scrape.Sum("aerie_batch_sessions_count");
    EXPECT_GE(count, last);
    EXPECT_EQ(scrape.Sum("aerie_batch_sessions_bucket", {{"le", "+Inf"}}), count);
    last = count;
  }
  engine.join();
  EXPECT_EQ(
      Exposition(Body(Get((*exporter)->port(), "/metrics"))).Sum("aerie_batch_sessions_count"),
      20000);
}

TEST_F(ExporterTest, FreesItsPortWhenItGoesAway) {
  auto first = StartExporter({.listen = "127.0.0.1:0"}, page_);
  ASSERT_TRUE(first.ok()) << first.status();
  const std::string address = (*first)->address();
  first->reset();
  EXPECT_TRUE(StartExporter({.listen = address}, page_).ok());
}

}  // namespace
}  // namespace aerie
