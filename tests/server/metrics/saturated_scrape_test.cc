// The page answers while the engine cannot: its thread is held inside a pass, its queue is full,
// and callers are being refused all the while.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "server/engine/draft_engine.h"
#include "server/metrics/exporter.h"
#include "server/metrics/prometheus_observer.h"
#include "tests/server/metrics/exposition.h"
#include "tests/testing/fake_draft_model.h"
#include "tests/testing/sequences.h"

namespace aerie {
namespace {

constexpr int kQueued = 64;

std::string Scrape(int32_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
  EXPECT_EQ(send(fd, request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  std::string answer;
  char buffer[1 << 16];
  for (ssize_t got = 0; (got = recv(fd, buffer, sizeof(buffer), 0)) > 0;) {
    answer.append(buffer, static_cast<size_t>(got));
  }
  close(fd);
  return answer;
}

TEST(SaturatedScrapeTest, AnswersWhileTheEngineIsStuckAndCallersAreRefused) {
  std::latch stuck(1), go_on(1);
  FakeDraftModelOptions model;
  model.before_step = [&, first = std::make_shared<std::atomic<bool>>(true)](const auto&) {
    if (!first->exchange(false)) return;
    stuck.count_down();
    go_on.wait();
  };
  PrometheusObserver observer({.max_k = 5});
  auto exporter = StartExporter({.listen = "127.0.0.1:0"}, observer.metrics());
  ASSERT_TRUE(exporter.ok()) << exporter.status();
  std::atomic<int> answered = 0, refused = 0;
  {
    DraftEngine engine({.max_k = 5, .max_queued = kQueued},
                       std::make_unique<FakeDraftModel>(std::move(model)), &observer);
    const auto draft = [&] {
      DraftCall call = MakeDraftCall("", 0, {1, 2, 3}, 2);
      call.sequence = FittingManifest();
      engine.Draft(std::move(call),
                   [&](const auto& result) { ++(result.ok() ? answered : refused); });
    };
    draft();
    stuck.wait();
    for (int i = 0; i < kQueued; ++i) draft();
    std::atomic<bool> scraped = false;
    std::thread caller([&] {
      while (!scraped) draft();
    });
    const absl::Time start = absl::Now();
    const std::string answer = Scrape((*exporter)->port());
    // Told, and judged by nobody: the machine may be loaded.
    RecordProperty("scrape_us", static_cast<int>(absl::ToInt64Microseconds(absl::Now() - start)));
    scraped = true;
    caller.join();
    ASSERT_EQ(answer.substr(0, 15), "HTTP/1.1 200 OK");
    const Exposition page(answer.substr(answer.find("\r\n\r\n") + 4));
    EXPECT_EQ(page.Sum("aerie_inflight"), 1);
    EXPECT_LE(page.Sum("aerie_rejected_total", {{"reason", "queue_full"}}), refused);
    EXPECT_EQ(answered, 0) << "the engine went on";
    go_on.count_down();
    engine.Drain(absl::InfiniteFuture());
  }
  EXPECT_EQ(answered, kQueued + 1);
  EXPECT_EQ(Exposition(*observer.metrics()).Sum("aerie_rejected_total", {{"reason", "queue_full"}}),
            refused);
}

}  // namespace
}  // namespace aerie
