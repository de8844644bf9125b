// How many rows of hidden states fit one message: prompts are cut by this, since a message above
// the server's limit is refused as a whole.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

namespace aerie {

struct RowLimits {
  int64_t max_rows_per_call = 0;
  int64_t max_message_bytes = 0;
};

// Rows that one call may carry when a row has `row_bytes` bytes of hidden states. At least 1.
// RESOURCE_EXHAUSTED when not even one row fits.
absl::StatusOr<int64_t> RowsPerCall(const RowLimits& limits, int64_t row_bytes);

}  // namespace aerie
