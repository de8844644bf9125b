#include "server/transport/shared_memory_book.h"

#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/error_detail.h"
#include "common/log.h"
#include "common/status_macros.h"
#include "server/transport/shared_segment.h"

namespace aerie {
namespace {

constexpr int64_t kLeastClientBytes = int64_t{1} << 20;
constexpr int64_t kMostClientBytes = int64_t{1} << 40;
constexpr int32_t kMostClientSegments = 1024;

// Whoever knows it may leave rows there, so nobody must be able to guess it.
std::string NewSegmentId() {
  std::random_device random;
  std::string id;
  for (int word = 0; word < 4; ++word) absl::StrAppendFormat(&id, "%08x", random());
  return id;
}

absl::Status Unknown(const std::string& segment_id) {
  return WithReason(
      absl::FailedPreconditionError(absl::StrCat(
          "no shared memory segment has the id \"", segment_id.substr(0, 64),
          "\"; expected one that RegisterSharedMemory gave, of a worker that still holds its lock; "
          "register the segment anew, or send the rows in the message")),
      kReasonSharedMemoryUnknown);
}

absl::Status OverQuota(const std::string& message) {
  ErrorDetail detail;
  detail.reason = kReasonSharedMemoryQuota;
  detail.retry_after = absl::Seconds(1);
  return WithDetail(absl::ResourceExhaustedError(message), detail);
}

}  // namespace

absl::Status SharedMemoryOptions::Validate() const {
  if (max_bytes_per_client < kLeastClientBytes || max_bytes_per_client > kMostClientBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--max-shared-memory-per-client is ", max_bytes_per_client, "; expected ",
        kLeastClientBytes, "..", kMostClientBytes,
        " bytes; give what the segments of one client may have together, such as 256MiB"));
  }
  if (max_segments_per_client < 1 || max_segments_per_client > kMostClientSegments) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--max-shared-segments-per-client is ", max_segments_per_client, "; expected 1..",
        kMostClientSegments, "; give one for each process of a worker that drafts"));
  }
  return absl::OkStatus();
}

SharedMemoryBook::SharedMemoryBook(const SharedMemoryOptions& options, int64_t max_call_bytes)
    : options_(options), max_call_bytes_(max_call_bytes) {}

SharedMemoryBook::~SharedMemoryBook() = default;

absl::StatusOr<v1::RegisterSharedMemoryResponse> SharedMemoryBook::Register(
    const std::string& caller, const std::string& client,
    const v1::RegisterSharedMemoryRequest& request) {
  AERIE_ASSIGN_OR_RETURN(std::shared_ptr<const SharedSegment> segment,
                         SharedSegment::Open(request.name(), request.key()));
  v1::RegisterSharedMemoryResponse response;
  response.set_segment_id(NewSegmentId());
  response.set_size(static_cast<uint64_t>(segment->size()));
  const MutexLock lock(&mutex_);
  ForgetDeadLocked();
  AERIE_RETURN_IF_ERROR(CheckQuota(client, segment->size()));
  AERIE_LOG(info, "shared memory: client \"{}\" registered a segment of {} bytes", client,
            segment->size());
  segments_[response.segment_id()] = {std::move(segment), caller, client};
  return response;
}

absl::Status SharedMemoryBook::CheckQuota(const std::string& client, int64_t bytes) const {
  int32_t segments = 0;
  int64_t held = 0;
  for (const auto& [id, entry] : segments_) {
    if (entry.client != client) continue;
    ++segments;
    held += entry.segment->size();
  }
  if (segments >= options_.max_segments_per_client) {
    return OverQuota(
        absl::StrCat("client \"", client, "\" has ", segments,
                     " shared memory segments; expected at most ", options_.max_segments_per_client,
                     "; unregister one, use one segment for all sessions of a "
                     "process, or raise the server's --max-shared-segments-per-client"));
  }
  if (bytes > options_.max_bytes_per_client - held) {
    return OverQuota(absl::StrCat(
        "client \"", client, "\" would have ", held, " + ", bytes,
        " bytes of shared memory; expected at most ", options_.max_bytes_per_client,
        "; make smaller segments, or raise the server's --max-shared-memory-per-client"));
  }
  return absl::OkStatus();
}

absl::Status SharedMemoryBook::Unregister(const std::string& caller,
                                          const std::string& segment_id) {
  const MutexLock lock(&mutex_);
  const auto found = segments_.find(segment_id);
  if (found == segments_.end()) return absl::OkStatus();
  if (found->second.caller != caller) {
    return WithReason(
        absl::PermissionDeniedError(absl::StrCat(
            "the shared memory segment is another client's than \"", caller,
            "\"; expected one of its own; unregister what this client has registered")),
        kReasonPermissionDenied);
  }
  segments_.erase(found);
  return absl::OkStatus();
}

absl::StatusOr<SharedBytes> SharedMemoryBook::Read(const std::string& caller,
                                                   const v1::SharedRows& rows) const {
  std::shared_ptr<const SharedSegment> segment;
  {
    const MutexLock lock(&mutex_);
    const auto found = segments_.find(rows.segment_id());
    // Another client's is not told from none.
    if (found == segments_.end() || found->second.caller != caller) {
      return Unknown(rows.segment_id());
    }
    segment = found->second.segment;
  }
  return segment->Read(rows, max_call_bytes_);
}

void SharedMemoryBook::ForgetDead() {
  const MutexLock lock(&mutex_);
  ForgetDeadLocked();
}

void SharedMemoryBook::ForgetDeadLocked() {
  for (auto it = segments_.begin(); it != segments_.end();) {
    if (it->second.segment->IsHeld()) {
      ++it;
      continue;
    }
    AERIE_LOG(info,
              "shared memory: forgot a segment of {} bytes of client \"{}\": its lock is gone",
              it->second.segment->size(), it->second.client);
    it = segments_.erase(it);
  }
}

int64_t SharedMemoryBook::segments() const {
  const MutexLock lock(&mutex_);
  return static_cast<int64_t>(segments_.size());
}

bool IsLocalPeer(std::string_view peer) {
  // gRPC gives addresses as URIs, so brackets may be escaped.
  for (const std::string_view local :
       {"unix:", "unix-abstract:", "ipv4:127.", "ipv6:%5B::1%5D:", "ipv6:[::1]:"}) {
    if (peer.substr(0, local.size()) == local) return true;
  }
  return false;
}

absl::Status SharedMemoryAccess::Check() const {
  if (book == nullptr) {
    return WithReason(
        absl::FailedPreconditionError(
            "the server takes no rows in shared memory; expected them in the message; send them "
            "there, or start the server with --shared-memory"),
        kReasonSharedMemoryOff);
  }
  const std::string peer = context->peer();
  if (IsLocalPeer(peer)) return absl::OkStatus();
  return WithReason(
      absl::FailedPreconditionError(absl::StrCat(
          "rows in shared memory are announced from ", peer,
          "; expected a Unix socket or loopback, since both sides have to see one memory; send the "
          "rows in the message")),
      kReasonSharedMemoryNotLocal);
}

absl::StatusOr<SharedBytes> SharedMemoryAccess::Read(const v1::SharedRows& rows) const {
  AERIE_RETURN_IF_ERROR(Check());
  return book->Read(caller, rows);
}

}  // namespace aerie
