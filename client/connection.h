// One connection to a draft server, and what to do when it is lost.
//
// Waiting is for the connection itself, never for a timer: gRPC reconnects on its own, and a call
// goes on as soon as that succeeds. Once a call has waited in vain the connection counts as down,
// and calls fail at once until it stands again: a worker whose drafter is away loses time once, not
// in every round.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "aerie/v1/draft.grpc.pb.h"
#include "client/client_options.h"

namespace aerie {

// Any thread.
class Connection {
 public:
  // `address` is host:port or unix:PATH. `options` must be valid. Does not connect yet.
  Connection(std::string address, const ClientOptions& options);

  v1::DraftService::Stub& stub() { return *stub_; }
  const std::string& address() const { return address_; }

  // Runs `attempt`, again after every loss of the connection until `deadline`, and returns the last
  // outcome. `attempt` must be safe to repeat. A server that answers UNAVAILABLE itself (it is
  // loading or draining) is not asked again. `attempts`, when given, grows by the number of tries.
  absl::Status Run(absl::Time deadline, absl::FunctionRef<absl::Status()> attempt, int* attempts);

 private:
  const std::string address_;
  const absl::Duration patience_;
  const std::string remedy_;  // what to do when there is no connection
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::DraftService::Stub> stub_;
  std::atomic<bool> down_{false};
};

}  // namespace aerie
