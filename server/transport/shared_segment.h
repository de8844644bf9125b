// One shared memory segment of a worker, opened by its name: read with pread, never mapped.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/transport/shared_memory_book.h"

namespace aerie {

// Any thread.
class SharedSegment {
 public:
  // INVALID_ARGUMENT, reason SHARED_MEMORY_INVALID: a name, a key or a segment that is not as
  // RegisterSharedMemory says, or that nobody holds the lock of.
  static absl::StatusOr<std::unique_ptr<const SharedSegment>> Open(const std::string& name,
                                                                   std::string_view key);
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  // As it was when it was opened; what a worker adds later is not looked at.
  int64_t size() const { return size_; }
  // Whether somebody holds the worker's lock.
  bool IsHeld() const;
  // The slot's rows, when its stamp is still `rows.stamp()` once they have been copied. Copies that
  // live at one time have at most kMostCopies times the segment's bytes: a call of some bytes names
  // millions, and calls that wait may all name the same ones. RESOURCE_EXHAUSTED past it.
  absl::StatusOr<SharedBytes> Read(const v1::SharedRows& rows, int64_t max_bytes) const;

 private:
  static constexpr int64_t kMostCopies = 2;
  using Buffer = std::shared_ptr<char[]>;

  SharedSegment(int fd, int64_t size) : fd_(fd), size_(size) {}
  absl::Status CheckSlot(const v1::SharedRows& rows, int64_t max_bytes) const;
  absl::StatusOr<Buffer> NewCopy(int64_t bytes) const;

  const int fd_;
  const int64_t size_;
  // Bytes of copies that live; they may outlive the segment.
  const std::shared_ptr<std::atomic<int64_t>> copied_ = std::make_shared<std::atomic<int64_t>>(0);
};

}  // namespace aerie
