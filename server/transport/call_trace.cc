#include "server/transport/call_trace.h"

#include <optional>

#include "common/trace_context.h"

namespace aerie {
namespace {

std::string Checked(std::string_view traceparent, RpcObserver* observer) {
  if (ParseTraceParent(traceparent).has_value()) return std::string(traceparent);
  if (observer != nullptr) observer->OnTraceIgnored();
  AERIE_LOG(debug, "a call's traceparent is \"{}\"; expected that of W3C Trace Context; ignored",
            std::string(traceparent.substr(0, 64)));
  return {};
}

}  // namespace

std::string TraceOf(const grpc::CallbackServerContext& context, RpcObserver* observer) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find(kTraceParent);
  if (found == metadata.end()) return {};
  return Checked({found->second.data(), found->second.size()}, observer);
}

std::string TraceOf(const std::string& named, const std::string& of_call, RpcObserver* observer) {
  if (named.empty()) return of_call;
  std::string checked = Checked(named, observer);
  return checked.empty() ? of_call : checked;
}

LogFields FieldsOf(const std::string& session, const std::string& traceparent) {
  const std::optional<TraceContext> trace = ParseTraceParent(traceparent);
  return {.session = session, .trace = trace.has_value() ? trace->trace_id : std::string()};
}

void LogAnswer(std::string_view call, const absl::Status& status, const std::string& session,
               const std::string& traceparent) {
  if (status.ok()) {
    AERIE_LOG_ABOUT(debug, FieldsOf(session, traceparent), "{}: OK", call);
  } else if (absl::IsInternal(status) || absl::IsUnknown(status)) {
    AERIE_LOG_ABOUT(warn, FieldsOf(session, traceparent), "{}: {}", call, status.ToString());
  } else {
    AERIE_LOG_ABOUT(debug, FieldsOf(session, traceparent), "{}: {}", call, status.ToString());
  }
}

void LogOpened(const std::string& session, const SessionOptions& options) {
  AERIE_LOG_ABOUT(debug, FieldsOf(session, options.traceparent), "session opened for client \"{}\"",
                  options.client);
}

}  // namespace aerie
