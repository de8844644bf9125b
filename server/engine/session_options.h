// What a session may ask for. Settings that contradict each other, or a limit of the server, are
// refused with both named; none is ever overridden.
#pragma once

#include "absl/status/statusor.h"
#include "server/engine/draft_call.h"
#include "server/engine/draft_model.h"

namespace aerie {

// `asked` with the server's values where it leaves them open. INVALID_ARGUMENT: reasons
// OPTIONS_INVALID and K_OUT_OF_RANGE. Whether fork_of exists is not looked at.
absl::StatusOr<SessionOptions> SettleOptions(const SessionOptions& asked,
                                             const EngineOptions& engine, const DrafterSpec& spec,
                                             const KvStore& store);

}  // namespace aerie
