// Serves /metrics over HTTP on a port and threads of its own, so that it answers while the server
// is overloaded.
//
// There is neither TLS nor a password: bind it to an address that only the monitoring can reach.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace prometheus {
class Collectable;
}  // namespace prometheus

namespace aerie {

// Stops serving when it is destroyed.
class Exporter {
 public:
  virtual ~Exporter() = default;
  // The bound address, "127.0.0.1:9464": the one asked for, with the real port when port 0 was.
  virtual const std::string& address() const = 0;
  virtual int32_t port() const = 0;
};

// `listen` is host:port, the host an IPv4 address or a name that has one (the HTTP library knows no
// IPv6); port 0 takes a free one. Keeps `metrics`, PrometheusObserver::metrics(), alive.
// INVALID_ARGUMENT: `listen` is no such address. UNAVAILABLE: it cannot be bound; the message says
// why.
absl::StatusOr<std::unique_ptr<Exporter>> StartExporter(
    const std::string& listen, std::shared_ptr<prometheus::Collectable> metrics);

}  // namespace aerie
