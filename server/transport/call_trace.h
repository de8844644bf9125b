// Whose trace a call belongs to, and what the log says of a call.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/log.h"
#include "common/session_options.h"
#include "grpcpp/server_context.h"
#include "server/transport/rpc_observer.h"

namespace aerie {

// The traceparent of the call's metadata; empty: it has none, or one that cannot be read, which
// `observer` (may be null) is told.
std::string TraceOf(const grpc::CallbackServerContext& context, RpcObserver* observer);

// The one that a message names, when it can be read; else `of_call`.
std::string TraceOf(const std::string& named, const std::string& of_call, RpcObserver* observer);

// What lines about a call of `session` (may be empty) with this traceparent carry.
LogFields FieldsOf(const std::string& session, const std::string& traceparent);

// A line at debug for each answer; faults of ours are warnings. `call` is what was asked: "Draft".
void LogAnswer(std::string_view call, const absl::Status& status, const std::string& session,
               const std::string& traceparent);

// A line at debug: `session` was opened with `options`.
void LogOpened(const std::string& session, const SessionOptions& options);

}  // namespace aerie
