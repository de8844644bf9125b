// The refusals that more than one place gives, each with its stable reason. What a worker is told
// to do stands here once.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace aerie {

// INVALID_ARGUMENT with `reason`.
absl::Status InvalidError(const char* reason, std::string message);
// FAILED_PRECONDITION: the rows from `row` on are to be sent again.
absl::Status ResendError(const char* reason, int64_t row, std::string seen_and_expected);

absl::Status SessionUnknownError(const std::string& id, bool expired, absl::Duration lease);
absl::Status EvictedError(const std::string& id, int64_t start);
absl::Status SessionLimitError(int32_t max_sessions);
absl::Status ClientSessionsError(const std::string& client, int32_t max_sessions);
absl::Status QueueFullError(int32_t max_queued);
absl::Status ClientQueueError(const std::string& client, int32_t max_queued);
// `wait`: until it may bring some.
absl::Status ClientRowsError(const std::string& client, int32_t rows_per_second, int32_t burst,
                             absl::Duration wait);
// `held`: bytes of its requests that are not answered yet, without the refused ones.
absl::Status ClientBytesError(const std::string& client, int64_t bytes, int64_t held,
                              int64_t max_bytes);
absl::Status TargetSessionsError(const std::string& target, int32_t max_sessions);
absl::Status TargetRowsError(const std::string& target, int32_t rows_per_second,
                             absl::Duration wait);
// `pages` more were needed, and busy sessions hold the others.
absl::Status KvMemoryError(int64_t pages, int64_t pages_total);
absl::Status DrainingError();
absl::Status CancelledByStreamError();

}  // namespace aerie
