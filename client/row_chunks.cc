#include "client/row_chunks.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace aerie {
namespace {

// Everything of a message that does not grow with rows: session id or manifest (its texts are at
// most a few hundred bytes), seq, base_length, tags and lengths.
constexpr int64_t kFixedBytes = 1024;
// A token id as a varint, at most.
constexpr int64_t kTokenBytes = 5;

}  // namespace

absl::StatusOr<int64_t> RowsPerCall(const RowLimits& limits, int64_t row_bytes) {
  const int64_t by_bytes = (limits.max_message_bytes - kFixedBytes) / (row_bytes + kTokenBytes);
  const int64_t rows = std::min(limits.max_rows_per_call, by_bytes);
  if (rows >= 1) return rows;
  return absl::ResourceExhaustedError(
      absl::StrCat("one row of ", row_bytes, " bytes does not fit a call: the limits are ",
                   limits.max_rows_per_call, " rows and ", limits.max_message_bytes,
                   " bytes a message; raise the server's limits or send a narrower dtype"));
}

}  // namespace aerie
