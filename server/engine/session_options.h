// What a session of this server may ask for. Settings that contradict each other, or a limit of the
// server, are refused with both named; none is ever overridden. What contradicts itself on any
// server is common/session_options.h's business.
#pragma once

#include "absl/status/statusor.h"
#include "server/engine/draft_call.h"
#include "server/engine/draft_model.h"

namespace aerie {

// `asked` with the server's values where it leaves them open. INVALID_ARGUMENT, reason
// OPTIONS_INVALID. Whether fork_of exists is not looked at.
absl::StatusOr<SessionOptions> SettleOptions(const SessionOptions& asked,
                                             const EngineOptions& engine, const DrafterSpec& spec,
                                             const KvStore& store);

}  // namespace aerie
