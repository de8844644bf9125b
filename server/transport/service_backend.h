// What calls are served with once the drafter is loaded.
#pragma once

#include <cstdint>
#include <functional>

#include "aerie/v1/draft.pb.h"
#include "common/wiring_report.h"
#include "server/engine/draft_engine.h"
#include "server/engine/round_observer.h"
#include "server/transport/rpc_observer.h"

namespace aerie {

inline constexpr char kDraftServiceName[] = "aerie.v1.DraftService";

struct ServiceBackend {
  DraftEngine* engine = nullptr;            // outlives the service's calls
  v1::GetServerInfoResponse info;           // of GetServerInfo
  RoundObserver* round_observer = nullptr;  // told of malformed calls; may be null
  RpcObserver* rpc_observer = nullptr;      // may be null
  // What changes of `info` while the server runs. Any thread; must not block.
  std::function<WiringState()> wiring_state;  // the worst of all sources; empty: the guard is off
  std::function<bool()> recording;            // empty: nothing is ever recorded
};

// Limits of what one connection may make the server hold.
struct ServiceLimits {
  int64_t max_message_bytes = 64 << 20;  // of one request
  // Requests of one stream that are not answered yet; past it the stream is not read, so that flow
  // control reaches the client. Also stops at max_message_bytes of unanswered requests.
  int32_t max_stream_in_flight = 256;
};

}  // namespace aerie
