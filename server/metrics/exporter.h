// Serves /metrics over HTTP or HTTPS on a port and threads of its own, so that it answers while the
// server is overloaded.
//
// What one would get wrong: without a guard whoever reaches the address reads the page, and without
// TLS a token travels in the clear.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace prometheus {
class Collectable;
}  // namespace prometheus

namespace aerie {

// Who asks for the page.
struct Scraper {
  std::optional<std::string_view> authorization;  // the header
  std::string certificate;  // the name in the one that was asked for; empty: none was
};

// Whether a scrape may be answered. Any thread. UNAUTHENTICATED and PERMISSION_DENIED become 401
// and 403, with the message.
using ScrapeGuard = std::function<absl::Status(const Scraper&)>;

// What a TLS listener shows, as PEM.
struct PageTls {
  std::string certificates, key;
  std::string client_ca;  // set: scrapers must show a certificate of these
};

struct ExporterOptions {
  // host:port, the host an IPv4 address or a name that has one; port 0 takes a free one.
  std::string listen;
  ScrapeGuard guard = nullptr;             // empty: everybody is answered
  std::function<PageTls()> tls = nullptr;  // asked at each handshake, any thread; empty: no TLS
};

// Stops serving when it is destroyed.
class Exporter {
 public:
  virtual ~Exporter() = default;
  // The bound address, "127.0.0.1:9464": the one asked for, with the real port when port 0 was.
  virtual const std::string& address() const = 0;
  virtual int32_t port() const = 0;
};

// Keeps `metrics`, PrometheusObserver::metrics(), alive. INVALID_ARGUMENT: `options.listen` is no
// such address. UNAVAILABLE: it cannot be bound; the message says why.
absl::StatusOr<std::unique_ptr<Exporter>> StartExporter(
    ExporterOptions options, std::shared_ptr<prometheus::Collectable> metrics);

}  // namespace aerie
