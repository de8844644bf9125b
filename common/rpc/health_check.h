// Asks a server for its health: grpc.health.v1.Health/Check.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"

namespace aerie::rpc {

enum class Health {
  kServing,
  kNotServing,  // there, but not now: loading or draining
};

// Of `service`; empty: of the server as a whole. The codes of gRPC when it cannot be asked:
// UNAVAILABLE, DEADLINE_EXCEEDED, UNIMPLEMENTED, NOT_FOUND for a service that it does not have.
absl::StatusOr<Health> CheckHealth(const std::shared_ptr<grpc::Channel>& channel,
                                   const std::string& service, absl::Time deadline);

}  // namespace aerie::rpc
