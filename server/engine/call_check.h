// Everything that is asked of a draft call before it may change anything.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/engine/draft_call.h"
#include "server/engine/kv_pages.h"
#include "server/engine/session.h"

namespace aerie {

// Whether `call` may be served by `session` now. Of a repeated number nothing else is asked, so ask
// IsRepeat() first. INVALID_ARGUMENT, ABORTED, FAILED_PRECONDITION, DEADLINE_EXCEEDED, CANCELLED as
// DraftService.Draft says.
absl::Status CheckCall(const DraftCall& call, const Session& session, const KvPages& pages,
                       const EngineOptions& options, int32_t vocab_size, absl::Time now);

// Whether `call` has the number of the call that was answered last.
bool IsRepeat(const DraftCall& call, const Session& session);

// Whether the rows of `call`, which has passed CheckCall(), do not fit into the session: it is
// answered without a draft.
bool IsPastContext(const DraftCall& call, const Session& session, const EngineOptions& options);

// DEADLINE_EXCEEDED or CANCELLED when nobody waits for `call` any more.
absl::Status CheckStillWanted(const DraftCall& call, absl::Time now);

// INVALID_ARGUMENT that names `field`, index and value of the first id outside 0..vocab_size-1.
absl::Status CheckTokens(const char* field, absl::Span<const int32_t> tokens, int32_t vocab_size);

}  // namespace aerie
