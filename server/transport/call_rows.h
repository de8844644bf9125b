// The rows of a call, in its message or in shared memory.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "aerie/v1/draft.pb.h"
#include "common/rpc/codec.h"
#include "server/transport/shared_memory_book.h"

namespace aerie {

// Exactly `rows` rows of `width` elements. Without an owner they lie in `states`; those in shared
// memory are copied out through `shared`.
absl::StatusOr<rpc::DecodedStates> ReadRows(const v1::HiddenStates& states, int64_t rows,
                                            int64_t width, const SharedMemoryAccess& shared);

}  // namespace aerie
