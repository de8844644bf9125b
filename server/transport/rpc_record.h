// Tells an RpcObserver about one call: started when it is made, handled when the reply is given.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/transport/rpc_observer.h"

namespace aerie {

class RpcRecord {
 public:
  // Without an observer nothing is told.
  RpcRecord(RpcObserver* observer, const RpcName& name)
      : observer_(observer), name_(name), arrival_(absl::Now()) {
    if (observer_ != nullptr) observer_->OnStarted(name_);
  }

  absl::Time arrival() const { return arrival_; }

  void Received(int64_t bytes) {
    if (observer_ != nullptr) observer_->OnMessageReceived(name_, bytes);
  }
  void Sent(int64_t bytes) {
    if (observer_ != nullptr) observer_->OnMessageSent(name_, bytes);
  }
  // Once.
  void Handled(absl::StatusCode code) {
    if (observer_ != nullptr) observer_->OnHandled(name_, code, absl::Now() - arrival_);
  }

 private:
  RpcObserver* const observer_;
  const RpcName name_;
  const absl::Time arrival_;
};

}  // namespace aerie
