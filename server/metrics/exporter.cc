#include "server/metrics/exporter.h"

#include <arpa/inet.h>
#include <httplib.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <string>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/status_macros.h"
#include "prometheus/collectable.h"
#include "prometheus/text_serializer.h"
#include "server/metrics/page_tls.h"

namespace aerie {
namespace {

constexpr char kText[] = "text/plain; charset=utf-8";
constexpr char kPage[] = "text/plain; version=0.0.4; charset=utf-8";
// A few, so that one stuck reader does not hide the server from the monitoring.
constexpr size_t kThreads = 4;
constexpr time_t kPatienceSeconds = 10;  // also of a stop with a reader that is stuck
// A scrape has no body.
constexpr size_t kMostBodyBytes = 4096;

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

// The library's own would let a second server share the port, and scrapes go to either.
void ReuseAddressAlone(socket_t socket) {
  const int yes = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
}

// The library says only that it could not bind.
std::string WhyNotBound(const Endpoint& endpoint) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::strerror(errno);
  const auto close_fd = absl::MakeCleanup([fd] { close(fd); });
  ReuseAddressAlone(fd);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(endpoint.port));
  inet_pton(AF_INET, endpoint.ip.c_str(), &address.sin_addr);
  const bool bound = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
                     listen(fd, 1) == 0;
  return bound ? "the HTTP server did not start" : std::strerror(errno);
}

class HttpExporter final : public Exporter {
 public:
  HttpExporter(ExporterOptions options, std::shared_ptr<prometheus::Collectable> metrics)
      : options_(std::move(options)), metrics_(std::move(metrics)) {}

  ~HttpExporter() override {
    if (server_ != nullptr) server_->stop();
    if (thread_.joinable()) thread_.join();
  }

  absl::Status Start(const Endpoint& endpoint) {
    if (options_.tls == nullptr) {
      server_ = std::make_unique<httplib::Server>();
    } else {
      server_ = std::make_unique<httplib::SSLServer>([this](SSL_CTX& context) {
        ServeTls(context, &options_.tls);
        return true;
      });
    }
    SetUp();
    port_ = endpoint.port;
    if (endpoint.port == 0) {
      port_ = server_->bind_to_any_port(endpoint.ip);
    } else if (!server_->bind_to_port(endpoint.ip, endpoint.port)) {
      port_ = -1;
    }
    if (port_ <= 0) {
      return absl::UnavailableError(absl::StrCat(
          "metrics cannot be served on ", endpoint.host, ":", endpoint.port, ": ",
          WhyNotBound(endpoint),
          "; expected a free port on an address of this machine; stop what holds it, give another "
          "address, port 0 for a free port, or turn the metrics off"));
    }
    address_ = absl::StrCat(endpoint.host, ":", port_);
    thread_ = std::thread([this] { server_->listen_after_bind(); });
    // Until then it could not be stopped.
    listening_.WaitForNotification();
    return absl::OkStatus();
  }

  const std::string& address() const override { return address_; }
  int32_t port() const override { return port_; }

 private:
  void SetUp() {
    using httplib::Request;
    using httplib::Response;
    // The library takes its threads once it has begun to listen.
    server_->new_task_queue = [this] {
      listening_.Notify();
      return new httplib::ThreadPool(kThreads);
    };
    server_->set_socket_options(&ReuseAddressAlone);
    // A connection that is kept open holds a thread.
    server_->set_keep_alive_max_count(1);
    server_->set_keep_alive_timeout(kPatienceSeconds);
    server_->set_read_timeout(kPatienceSeconds);
    server_->set_write_timeout(kPatienceSeconds);
    server_->set_payload_max_length(kMostBodyBytes);
    server_->set_exception_handler([](const Request&, Response& response, std::exception_ptr) {
      response.status = 500;
      response.set_content("the page could not be made\n", kText);
    });
    server_->Get("/metrics", [this](const Request& request, Response& response) {
      Answer(request, &response);
    });
    const auto refuse = [](const Request&, Response& response) {
      response.status = 405;
      response.set_header("Allow", "GET, HEAD");
      response.set_content("only GET and HEAD are served\n", kText);
    };
    server_->Post("/metrics", refuse);
    server_->Put("/metrics", refuse);
    server_->Patch("/metrics", refuse);
    server_->Delete("/metrics", refuse);
    server_->Options("/metrics", refuse);
  }

  void Answer(const httplib::Request& request, httplib::Response* response) const {
    if (const absl::Status admitted = Admit(request); !admitted.ok()) {
      const bool known = absl::IsPermissionDenied(admitted);
      response->status = known ? 403 : 401;
      if (!known) response->set_header("WWW-Authenticate", "Bearer realm=\"aerie\"");
      response->set_content(absl::StrCat(admitted.message(), "\n"), kText);
      return;
    }
    response->set_content(prometheus::TextSerializer().Serialize(metrics_->Collect()), kPage);
  }

  absl::Status Admit(const httplib::Request& request) const {
    if (options_.guard == nullptr) return absl::OkStatus();
    const std::string header = request.get_header_value("Authorization");
    Scraper scraper;
    if (request.has_header("Authorization")) scraper.authorization = header;
    scraper.certificate = PeerName(request.ssl);
    return options_.guard(scraper);
  }

  const ExporterOptions options_;
  const std::shared_ptr<prometheus::Collectable> metrics_;
  std::unique_ptr<httplib::Server> server_;
  absl::Notification listening_;
  std::thread thread_;
  std::string address_;
  int32_t port_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Exporter>> StartExporter(
    ExporterOptions options, std::shared_ptr<prometheus::Collectable> metrics) {
  AERIE_ASSIGN_OR_RETURN(const Endpoint endpoint, Resolve(options.listen));
  auto exporter = std::make_unique<HttpExporter>(std::move(options), std::move(metrics));
  AERIE_RETURN_IF_ERROR(exporter->Start(endpoint));
  return exporter;
}

}  // namespace aerie
