#include "server/probe.h"

#include <cstdio>
#include <string>

#include "absl/time/clock.h"
#include "common/rpc/channel.h"
#include "common/rpc/health_check.h"

namespace aerie {
namespace {

// Within what those who probe a container usually allow.
constexpr absl::Duration kPatience = absl::Seconds(3);

}  // namespace

int Probe(const ProbeOptions& options) {
  const absl::StatusOr<rpc::ChannelSecrets> secrets = rpc::ReadChannelFiles(options.files);
  if (!secrets.ok()) {
    std::fprintf(stderr, "aerie-server: %s\n", std::string(secrets.status().message()).c_str());
    return 2;
  }
  const auto channel = rpc::OpenChannel(options.address, *secrets);
  const absl::StatusOr<rpc::Health> health =
      rpc::CheckHealth(channel, /*service=*/"", absl::Now() + kPatience);
  if (!health.ok()) {
    std::fprintf(stderr,
                 "aerie-server: the server at %s cannot be asked for its health: %s; expected an "
                 "aerie-server that listens there, %s; compare --probe with its --listen, and "
                 "--tls-ca with its --tls-cert\n",
                 options.address.c_str(), std::string(health.status().message()).c_str(),
                 secrets->ca.empty() ? "in the clear" : "over TLS");
    return 2;
  }
  const bool serving = *health == rpc::Health::kServing;
  std::puts(serving ? "SERVING" : "NOT_SERVING");
  return serving ? 0 : 1;
}

}  // namespace aerie
