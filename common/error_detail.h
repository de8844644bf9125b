// What a failed call tells programs beside its code and message. Travels as a payload of
// absl::Status, so that the engine can say it without knowing gRPC; common/rpc turns it into
// aerie.v1.ErrorDetail and back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace aerie {

struct FieldMismatch {
  std::string field, expected, received;
  friend bool operator==(const FieldMismatch&, const FieldMismatch&) = default;
};

struct ErrorDetail {
  std::string reason;  // UPPER_SNAKE, one of kReason* below
  std::optional<int64_t> resend_from;
  std::optional<absl::Duration> retry_after;
  std::vector<FieldMismatch> mismatches;
};

// Stable reasons. Clients act on them, so they are part of the contract.
inline constexpr char kReasonBaseLengthAhead[] = "BASE_LENGTH_AHEAD";
inline constexpr char kReasonByteCount[] = "BYTE_COUNT";
inline constexpr char kReasonCancelled[] = "CANCELLED";
inline constexpr char kReasonDType[] = "DTYPE_MISMATCH";
inline constexpr char kReasonDeadline[] = "DEADLINE";
inline constexpr char kReasonDraining[] = "DRAINING";
inline constexpr char kReasonEvicted[] = "EVICTED";
inline constexpr char kReasonForkInvalid[] = "FORK_INVALID";
inline constexpr char kReasonKOutOfRange[] = "K_OUT_OF_RANGE";
inline constexpr char kReasonKWithoutRows[] = "K_WITHOUT_ROWS";
inline constexpr char kReasonKvMemory[] = "KV_MEMORY";
inline constexpr char kReasonLoading[] = "LOADING";
inline constexpr char kReasonManifestInvalid[] = "MANIFEST_INVALID";
inline constexpr char kReasonManifestMismatch[] = "MANIFEST_MISMATCH";
inline constexpr char kReasonMessageTooLarge[] = "MESSAGE_TOO_LARGE";
inline constexpr char kReasonNonFinite[] = "NON_FINITE";
inline constexpr char kReasonOptionsInvalid[] = "OPTIONS_INVALID";
inline constexpr char kReasonPassFailed[] = "PASS_FAILED";
inline constexpr char kReasonPermissionDenied[] = "PERMISSION_DENIED";
inline constexpr char kReasonClientLimit[] = "CLIENT_LIMIT";
inline constexpr char kReasonQueueFull[] = "QUEUE_FULL";
inline constexpr char kReasonRequestInvalid[] = "REQUEST_INVALID";
inline constexpr char kReasonSeqBehind[] = "SEQ_BEHIND";
inline constexpr char kReasonSessionLimit[] = "SESSION_LIMIT";
inline constexpr char kReasonSharedMemoryBounds[] = "SHARED_MEMORY_BOUNDS";
inline constexpr char kReasonSharedMemoryChanged[] = "SHARED_MEMORY_CHANGED";
inline constexpr char kReasonSharedMemoryInvalid[] = "SHARED_MEMORY_INVALID";
inline constexpr char kReasonSharedMemoryNotLocal[] = "SHARED_MEMORY_NOT_LOCAL";
inline constexpr char kReasonSharedMemoryOff[] = "SHARED_MEMORY_OFF";
inline constexpr char kReasonSharedMemoryQuota[] = "SHARED_MEMORY_QUOTA";
inline constexpr char kReasonSharedMemoryUnknown[] = "SHARED_MEMORY_UNKNOWN";
inline constexpr char kReasonSessionUnknown[] = "SESSION_UNKNOWN";
inline constexpr char kReasonTargetLimit[] = "TARGET_LIMIT";
inline constexpr char kReasonTokenOutOfRange[] = "TOKEN_OUT_OF_RANGE";
inline constexpr char kReasonTooManyRows[] = "TOO_MANY_ROWS";
inline constexpr char kReasonUnauthenticated[] = "UNAUTHENTICATED";

// `status` with `detail` attached. `status` must not be OK.
absl::Status WithDetail(absl::Status status, const ErrorDetail& detail);
// Shorthand for a detail that is only a reason.
absl::Status WithReason(absl::Status status, std::string reason);

// The detail attached to `status`; an empty one when there is none.
ErrorDetail DetailOf(const absl::Status& status);

}  // namespace aerie
