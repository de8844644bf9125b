// What is told of a call beside its draft, wherever in the engine it was answered.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/engine/draft_call.h"
#include "server/engine/round_observer.h"

namespace aerie {

// What is told of `call` when it was answered before any pass.
RoundRecord RecordWithoutPass(absl::StatusCode outcome, const DraftCall& call, absl::Time now);

// What is told of a draft that is short for this reason.
std::optional<SkipReason> SkipReasonOf(NoDraftReason reason);

// How the session's proposals are made.
ProposalMethod MethodOf(const SessionOptions& options);

}  // namespace aerie
