#include "server/probe.h"

#include <cstdio>

#include "absl/time/clock.h"
#include "common/rpc/health_check.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"

namespace aerie {
namespace {

// Within what those who probe a container usually allow.
constexpr absl::Duration kPatience = absl::Seconds(3);

}  // namespace

int Probe(const std::string& address) {
  const auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  const absl::StatusOr<rpc::Health> health =
      rpc::CheckHealth(channel, /*service=*/"", absl::Now() + kPatience);
  if (!health.ok()) {
    std::fprintf(stderr,
                 "aerie-server: the server at %s cannot be asked for its health: %s; expected an "
                 "aerie-server that listens there; compare --probe with its --listen\n",
                 address.c_str(), std::string(health.status().message()).c_str());
    return 2;
  }
  const bool serving = *health == rpc::Health::kServing;
  std::puts(serving ? "SERVING" : "NOT_SERVING");
  return serving ? 0 : 1;
}

}  // namespace aerie
