// What the transport tells about calls; server/metrics counts it under the grpc_server_* names.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace aerie {

enum class RpcType { kUnary, kBidiStream };

// Which call it is about. The strings are static: the service and method names of the proto file.
struct RpcName {
  RpcType type = RpcType::kUnary;
  std::string_view service;  // "aerie.v1.DraftService"
  std::string_view method;   // "Draft"
};

// What a request asks of the engine, in a call of its own or on a stream.
enum class CallKind { kOpenSession, kDraft, kCloseSession };

// Any thread. Implementations must not block.
class RpcObserver {
 public:
  virtual ~RpcObserver() = default;
  virtual void OnStarted(const RpcName& name) = 0;
  virtual void OnMessageReceived(const RpcName& name, int64_t bytes) = 0;
  virtual void OnMessageSent(const RpcName& name, int64_t bytes) = 0;
  virtual void OnHandled(const RpcName& name, absl::StatusCode code, absl::Duration duration) = 0;
  // A request was answered with `code`; of a stream, whose RPC ends with one code for all of them,
  // each.
  virtual void OnAnswered(CallKind call, RpcType via, absl::StatusCode code) = 0;
  // A caller's traceparent could not be read.
  virtual void OnTraceIgnored() = 0;
};

}  // namespace aerie
