// How many pages of draft KV one session can take, and that the store has them: a server that could
// not hold even one would refuse call after call and name no cause.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "server/engine/draft_call.h"
#include "server/engine/draft_model.h"

namespace aerie {

// With a draft window, rows that a session keeps beyond it: what one round can commit may be rolled
// back or fail and come again.
int64_t RollbackRows(const EngineOptions& options);

// The most pages that a session holds at any time, while a round of so many draft rows runs.
int64_t MostPagesOfSession(const EngineOptions& options, int32_t page_rows, int64_t draft_rows);

// For the start of a server. INVALID_ARGUMENT, with the flags that contradict each other, when the
// store cannot hold one session of --max-context rows, or of what --draft-window leaves of them.
absl::Status CheckKvFits(const EngineOptions& options, const KvStore& store);

}  // namespace aerie
