// The answer of GetServerInfo: what this server is, holds and takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "aerie/v1/draft.pb.h"
#include "common/setting.h"
#include "common/wiring_report.h"
#include "server/engine/draft_engine.h"
#include "server/engine/draft_model.h"
#include "server/transport/client_limits.h"
#include "server/transport/served_drafter.h"
#include "server/transport/service_backend.h"

namespace aerie {

// Grows when the contract changes.
inline constexpr uint32_t kProtocolVersion = 1;

struct BuildInfo {
  std::string version, revision, compiler, libtorch;
};

// What does not hang on drafters.
v1::GetServerInfoResponse BuildServerInfo(const BuildInfo& build,
                                          const std::vector<Setting>& settings, GuardMode guard);
// What does, of each.
v1::DrafterInfo DescribeDrafter(const DrafterSpec& spec);
v1::Limits DescribeLimits(const EngineOptions& engine, const KvStore& kv_store,
                          const ServiceLimits& service);
// Of one client, beside the engine's.
void DescribeClientLimits(const ClientLimitOptions& clients, v1::Limits* limits);
// Adds those that take new sessions. Limits: what a call may bring whichever of them it is for; of
// the draft KV, of which each has its own, the first one's.
void AddDrafters(const std::vector<ServedDrafterPtr>& drafters, v1::GetServerInfoResponse* info);

// How many rows of `row_width` elements surely fit into one request of `max_message_bytes`,
// whatever their dtype; at least 1.
int32_t RowsThatFit(int64_t max_message_bytes, int64_t row_width);

}  // namespace aerie
