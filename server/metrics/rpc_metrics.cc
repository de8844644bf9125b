#include "server/metrics/rpc_metrics.h"

#include <algorithm>
#include <string>

#include "server/metrics/buckets.h"

namespace aerie {
namespace {

const char* TypeLabel(RpcType type) {
  for (const auto& [value, label] : kRpcTypes) {
    if (value == type) return label;
  }
  AERIE_CHECK(false) << "RPC type " << static_cast<int>(type) << " has no label";
  return "";
}

size_t IndexOf(CallKind call, RpcType type) {
  return static_cast<size_t>(type) * kCallKinds.size() + static_cast<size_t>(call);
}

}  // namespace

RpcMetrics::RpcMetrics(MetricRegistry& registry)
    : traces_ignored_(registry.AddCounter(kTracesIgnored, {})) {
  auto& calls = registry.AddCounters(kCalls, {});
  for (const auto& type : kRpcTypes) {
    for (const auto& call : kCallKinds) {
      AERIE_CHECK(IndexOf(call.value, type.value) == answered_.size()) << "a table is out of order";
      answered_.emplace_back(calls, "grpc_code", kRpcCodes,
                             prometheus::Labels{{"call", call.label}, {"grpc_type", type.label}});
    }
  }
  auto& started = registry.AddCounters(kRpcStarted, {});
  auto& handled = registry.AddCounters(kRpcHandled, {});
  auto& messages_received = registry.AddCounters(kRpcMessagesReceived, {});
  auto& messages_sent = registry.AddCounters(kRpcMessagesSent, {});
  auto& received_bytes = registry.AddCounters(kRpcReceivedBytes, {});
  auto& sent_bytes = registry.AddCounters(kRpcSentBytes, {});
  auto& handling = registry.AddHistograms(kRpcHandlingSeconds, {}, RpcDurationBuckets());
  for (const RpcName& name : kRpcMethods) {
    const prometheus::Labels labels = {{"grpc_type", TypeLabel(name.type)},
                                       {"grpc_service", std::string(name.service)},
                                       {"grpc_method", std::string(name.method)}};
    methods_.push_back({.name = name,
                        .started = &started.Add(labels),
                        .messages_received = &messages_received.Add(labels),
                        .messages_sent = &messages_sent.Add(labels),
                        .received_bytes = &received_bytes.Add(labels),
                        .sent_bytes = &sent_bytes.Add(labels),
                        .handling_seconds = &handling.Add(labels),
                        .handled = {handled, "grpc_code", kRpcCodes, labels}});
  }
}

RpcMetrics::Method& RpcMetrics::Find(const RpcName& name) {
  const auto found = std::find_if(methods_.begin(), methods_.end(), [&name](const Method& method) {
    return method.name.method == name.method && method.name.service == name.service;
  });
  AERIE_CHECK(found != methods_.end())
      << name.service << "/" << name.method << " is not in kRpcMethods";
  return *found;
}

void RpcMetrics::OnStarted(const RpcName& name) { Find(name).started->Increment(); }

void RpcMetrics::OnMessageReceived(const RpcName& name, int64_t bytes) {
  Method& method = Find(name);
  method.messages_received->Increment();
  method.received_bytes->Increment(static_cast<double>(bytes));
}

void RpcMetrics::OnMessageSent(const RpcName& name, int64_t bytes) {
  Method& method = Find(name);
  method.messages_sent->Increment();
  method.sent_bytes->Increment(static_cast<double>(bytes));
}

void RpcMetrics::OnHandled(const RpcName& name, absl::StatusCode code, absl::Duration duration) {
  Method& method = Find(name);
  method.handled.Increment(code);
  method.handling_seconds->Observe(absl::ToDoubleSeconds(std::max(duration, absl::ZeroDuration())));
}

void RpcMetrics::OnAnswered(CallKind call, RpcType via, absl::StatusCode code) {
  answered_[IndexOf(call, via)].Increment(code);
}

void RpcMetrics::OnTraceIgnored() { traces_ignored_.Increment(); }

}  // namespace aerie
