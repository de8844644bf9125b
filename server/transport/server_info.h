// The answer of GetServerInfo: what this server is, holds and takes. Fixed once the drafter is
// loaded, but for what ServiceBackend adds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "aerie/v1/draft.pb.h"
#include "common/setting.h"
#include "common/wiring_report.h"
#include "server/engine/draft_engine.h"
#include "server/engine/draft_model.h"

namespace aerie {

// Grows when the contract changes.
inline constexpr uint32_t kProtocolVersion = 1;

struct BuildInfo {
  std::string version, revision, compiler, libtorch;
};

struct GuardInfo {
  GuardMode mode = GuardMode::kOff;
  bool profile = false;
};

// `settings` are the server's own; those of the drafter are in `spec`.
v1::GetServerInfoResponse BuildServerInfo(const DrafterSpec& spec, const KvStore& kv_store,
                                          const EngineOptions& engine, int64_t max_message_bytes,
                                          const BuildInfo& build,
                                          const std::vector<Setting>& settings,
                                          const GuardInfo& guard = {});

// How many rows of `row_width` elements surely fit into one request of `max_message_bytes`,
// whatever their dtype; at least 1.
int32_t RowsThatFit(int64_t max_message_bytes, int64_t row_width);

}  // namespace aerie
