// Shared memory segments of workers on this host, and the rows that calls leave in them.
//
// What one would get wrong: nothing of a segment is ever mapped. Its worker may shrink it and write
// to it whenever it likes: a mapping would end the server with SIGBUS, and what has been checked
// would not be what is drafted from. So rows are copied out with pread, the one copy that they
// take, and checked in the copy.
//
// A segment is known for as long as its worker holds a lock on it, which the kernel lets go when
// the worker ends, however it ends.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aerie/v1/draft.pb.h"
#include "common/mutex.h"
#include "grpcpp/server_context.h"

namespace aerie {

struct SharedMemoryOptions {
  bool enabled = false;
  int64_t max_bytes_per_client = int64_t{256} << 20;  // 1 MiB .. 1 TiB, of all its segments
  int32_t max_segments_per_client = 8;                // 1..1024

  // INVALID_ARGUMENT that names the flag and the value.
  absl::Status Validate() const;
};

// Rows that have been copied out of a segment.
struct SharedBytes {
  std::string_view bytes;
  std::shared_ptr<const void> owner;
};

class SharedSegment;

// Any thread.
class SharedMemoryBook {
 public:
  // Rows of one call have at most `max_call_bytes`.
  SharedMemoryBook(const SharedMemoryOptions& options, int64_t max_call_bytes);
  ~SharedMemoryBook();

  // As DraftService.RegisterSharedMemory, but for where the call comes from. Only who was admitted
  // as `caller` may use the segment; it counts against `client`.
  absl::StatusOr<v1::RegisterSharedMemoryResponse> Register(
      const std::string& caller, const std::string& client,
      const v1::RegisterSharedMemoryRequest& request);
  absl::Status Unregister(const std::string& caller, const std::string& segment_id);

  // A copy of rows, as DraftService.Draft says.
  absl::StatusOr<SharedBytes> Read(const std::string& caller, const v1::SharedRows& rows) const;

  // Lets go of segments whose workers have ended. To be called now and then; a registration looks
  // by itself, so that a worker that was started anew finds its quota free.
  void ForgetDead();

  int64_t segments() const;

 private:
  struct Entry {
    std::shared_ptr<const SharedSegment> segment;
    std::string caller, client;
  };
  void ForgetDeadLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckQuota(const std::string& client, int64_t bytes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const SharedMemoryOptions options_;
  const int64_t max_call_bytes_;
  mutable Mutex mutex_;
  std::map<std::string, Entry> segments_ ABSL_GUARDED_BY(mutex_);  // by id
};

// Whether a call that comes from `peer`, as gRPC names it, comes from this host: over a Unix socket
// or loopback.
bool IsLocalPeer(std::string_view peer);

// What calls of one caller may do with shared memory.
struct SharedMemoryAccess {
  SharedMemoryBook* book = nullptr;  // null: the server allows none
  std::string caller;                // as it was admitted
  const grpc::CallbackServerContext* context = nullptr;

  // FAILED_PRECONDITION, reasons SHARED_MEMORY_OFF and SHARED_MEMORY_NOT_LOCAL.
  absl::Status Check() const;
  absl::StatusOr<SharedBytes> Read(const v1::SharedRows& rows) const;
};

}  // namespace aerie
