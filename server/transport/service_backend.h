// What calls are served with once a drafter is loaded.
#pragma once

#include <cstdint>
#include <memory>

#include "aerie/v1/draft.pb.h"
#include "server/transport/client_limits.h"
#include "server/transport/drafter_directory.h"
#include "server/transport/rpc_observer.h"
#include "server/transport/shared_memory_book.h"

namespace aerie {

inline constexpr char kDraftServiceName[] = "aerie.v1.DraftService";

struct ServiceBackend {
  const DrafterDirectory* drafters = nullptr;  // outlives the service's calls; never without one
  v1::GetServerInfoResponse info;              // of GetServerInfo, without what drafters add
  RpcObserver* rpc_observer = nullptr;         // may be null
  SharedMemoryBook* shared_memory = nullptr;   // null: no rows in shared memory
};

// Limits of what one connection, and one client, may make the server hold.
struct ServiceLimits {
  int64_t max_message_bytes = 64 << 20;  // of one request
  // Requests of one stream that are not answered yet; past it the stream is not read, so that flow
  // control reaches the client. Also stops at max_message_bytes of unanswered requests. A batch
  // may bring as many at once.
  int32_t max_stream_in_flight = 256;
  std::shared_ptr<ClientLimits> clients;  // null: none
};

}  // namespace aerie
