// What the transport tells, counted. ServerMetrics hands its RpcObserver calls on to this.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/metrics/metric_registry.h"
#include "server/transport/rpc_observer.h"

namespace aerie {

// Any thread.
class RpcMetrics {
 public:
  // `registry` must outlive this.
  explicit RpcMetrics(MetricRegistry& registry);

  void OnStarted(const RpcName& name);
  void OnMessageReceived(const RpcName& name, int64_t bytes);
  void OnMessageSent(const RpcName& name, int64_t bytes);
  void OnHandled(const RpcName& name, absl::StatusCode code, absl::Duration duration);
  void OnAnswered(CallKind call, RpcType via, absl::StatusCode code);
  void OnTraceIgnored();

 private:
  struct Method {
    RpcName name;
    prometheus::Counter* started;
    prometheus::Counter* messages_received;
    prometheus::Counter* messages_sent;
    prometheus::Counter* received_bytes;
    prometheus::Counter* sent_bytes;
    AtomicHistogram* handling_seconds;
    CounterTable<absl::StatusCode, kRpcCodes.size()> handled;
  };

  Method& Find(const RpcName& name);

  using CodeTable = CounterTable<absl::StatusCode, kRpcCodes.size()>;
  std::vector<CodeTable> answered_;  // [type][call]
  prometheus::Counter& traces_ignored_;
  std::vector<Method> methods_;  // a handful: a walk over them is quicker than a hash
};

}  // namespace aerie
