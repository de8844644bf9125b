#include "server/metrics/exporter.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <exception>
#include <string>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "civetweb.h"
#include "common/check.h"
#include "common/status_macros.h"
#include "prometheus/collectable.h"
#include "prometheus/text_serializer.h"

namespace aerie {
namespace {

struct Endpoint {
  std::string host;  // as the operator wrote it
  std::string ip;    // dotted
  int32_t port = 0;
};

absl::StatusOr<Endpoint> Resolve(const std::string& listen) {
  const auto invalid = [&listen](const std::string& seen) {
    return absl::InvalidArgumentError(absl::StrCat(
        "metrics address '", listen, "' ", seen,
        "; expected host:port with an IPv4 address or a name that has one, and a port of 0 to "
        "65535; give one like 127.0.0.1:9464"));
  };
  const size_t colon = listen.rfind(':');
  if (colon == std::string::npos) return invalid("has no port");
  Endpoint endpoint;
  endpoint.host = listen.substr(0, colon);
  const std::string port = listen.substr(colon + 1);
  // Looked at by hand: the HTTP library would read "80s" as TLS and a comma as a second address.
  if (port.empty() || port.find_first_not_of("0123456789") != std::string::npos ||
      !absl::SimpleAtoi(port, &endpoint.port) || endpoint.port > 65535) {
    return invalid(absl::StrCat("has port '", port, "'"));
  }
  if (endpoint.host.empty()) return invalid("has no host");
  if (endpoint.host.find(':') != std::string::npos) return invalid("has an IPv6 host");
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int code = getaddrinfo(endpoint.host.c_str(), nullptr, &hints, &found); code != 0) {
    return invalid(absl::StrCat("has a host that cannot be resolved (", gai_strerror(code), ")"));
  }
  const auto free_found = absl::MakeCleanup([found] { freeaddrinfo(found); });
  char ip[INET_ADDRSTRLEN] = {};
  const auto* address = reinterpret_cast<const sockaddr_in*>(found->ai_addr);
  inet_ntop(AF_INET, &address->sin_addr, ip, sizeof(ip));
  endpoint.ip = ip;
  return endpoint;
}

// What a scrape is answered with. No exception may reach the library, which is C.
int AnswerScrape(mg_connection* connection, void* collectable) {
  const std::string_view method = mg_get_request_info(connection)->request_method;
  if (method != "GET" && method != "HEAD") {
    mg_send_http_error(connection, 405, "%s", "only GET and HEAD are served");
    return 405;
  }
  std::string body;
  try {
    body = prometheus::TextSerializer().Serialize(
        static_cast<const prometheus::Collectable*>(collectable)->Collect());
  } catch (const std::exception& error) {
    mg_send_http_error(connection, 500, "%s", error.what());
    return 500;
  }
  mg_printf(connection,
            "HTTP/1.1 200 OK\r\n"
            "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
            "Content-Length: %zu\r\n"
            "Connection: close\r\n\r\n",
            body.size());
  if (method == "GET") mg_write(connection, body.data(), body.size());
  return 200;
}

class CivetExporter final : public Exporter {
 public:
  explicit CivetExporter(std::shared_ptr<prometheus::Collectable> metrics)
      : metrics_(std::move(metrics)) {
    mg_init_library(MG_FEATURES_DEFAULT);
  }

  ~CivetExporter() override {
    if (server_ != nullptr) Stop();
    mg_exit_library();
  }

  absl::Status Start(const Endpoint& endpoint) {
    const std::string listen = absl::StrCat(endpoint.ip, ":", endpoint.port);
    // Two threads, so that one stuck reader does not hide the server from the monitoring.
    const char* options[] = {"listening_ports",    listen.c_str(), "num_threads", "2",
                             "request_timeout_ms", "10000",        nullptr};
    mg_callbacks callbacks{};
    callbacks.log_message = &CivetExporter::KeepFirstMessage;
    mg_init_data init{};
    init.callbacks = &callbacks;
    init.user_data = this;
    init.configuration_options = options;
    server_ = mg_start2(&init, nullptr);
    if (server_ == nullptr) {
      absl::MutexLock lock(&mutex_);
      return absl::UnavailableError(absl::StrCat(
          "metrics cannot be served on ", endpoint.host, ":", endpoint.port, ": ",
          first_message_.empty() ? "the HTTP server did not start" : first_message_,
          "; expected a free port on an address of this machine; stop what holds it, give another "
          "address, port 0 for a free port, or turn the metrics off"));
    }
    mg_set_request_handler(server_, "/metrics$", &AnswerScrape, metrics_.get());
    mg_server_port bound{};
    AERIE_CHECK(mg_get_server_ports(server_, 1, &bound) == 1) << "listens on no port";
    ip_ = endpoint.ip;
    port_ = bound.port;
    address_ = absl::StrCat(endpoint.host, ":", port_);
    return absl::OkStatus();
  }

  const std::string& address() const override { return address_; }
  int32_t port() const override { return port_; }

 private:
  // The library sees that it has to stop only when its wait for a connection ends, which takes two
  // seconds if none comes. So it gets some.
  void Stop() {
    absl::Notification stopped;
    std::thread stop([this, &stopped] {
      mg_stop(server_);
      stopped.Notify();
    });
    do {
      Touch();
    } while (!stopped.WaitForNotificationWithTimeout(absl::Milliseconds(10)));
    stop.join();
  }

  // Starts to connect, and leaves it at that.
  void Touch() const {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port_));
    inet_pton(AF_INET, ip_.c_str(), &address.sin_addr);
    connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
    close(fd);
  }

  // The library logs why it cannot bind before it says only that it failed.
  static int KeepFirstMessage(const mg_connection* connection, const char* message) {
    auto* self = static_cast<CivetExporter*>(mg_get_user_data(mg_get_context(connection)));
    if (self != nullptr) {
      absl::MutexLock lock(&self->mutex_);
      if (self->first_message_.empty()) self->first_message_ = message;
    }
    return 1;  // handled: the library prints nothing itself
  }

  const std::shared_ptr<prometheus::Collectable> metrics_;
  mg_context* server_ = nullptr;
  std::string address_;
  std::string ip_;
  int32_t port_ = 0;
  absl::Mutex mutex_;
  std::string first_message_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<Exporter>> StartExporter(
    const std::string& listen, std::shared_ptr<prometheus::Collectable> metrics) {
  AERIE_ASSIGN_OR_RETURN(const Endpoint endpoint, Resolve(listen));
  auto exporter = std::make_unique<CivetExporter>(std::move(metrics));
  AERIE_RETURN_IF_ERROR(exporter->Start(endpoint));
  return exporter;
}

}  // namespace aerie
