// A shared memory segment of this process, in which rows wait for a server on this host
// (common/shared_rows_layout.h).
//
// What one would get wrong: a slot is free again when its call has ended, and that call may still
// be under way to the server. Its stamp keeps the server from taking the rows that come after.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace aerie {

// Any thread.
class SharedRowSegment {
 public:
  struct Slot {
    int64_t offset = 0, length = 0;
    uint64_t stamp = 0;
  };

  // Makes a new one of `bytes`, all of them taken from the system at once, and locks it for as long
  // as it lives. Before that it removes what dead processes of this user have left.
  // RESOURCE_EXHAUSTED: /dev/shm has no room. UNAVAILABLE: it cannot be used otherwise.
  static absl::StatusOr<std::unique_ptr<SharedRowSegment>> Create(int64_t bytes);
  ~SharedRowSegment();
  SharedRowSegment(const SharedRowSegment&) = delete;
  SharedRowSegment& operator=(const SharedRowSegment&) = delete;

  const std::string& name() const { return name_; }
  const std::string& key() const { return key_; }
  // From now on nobody can open it, and nothing of it is left behind.
  void Unlink();

  // Copies `bytes` into a slot; none when they find no room.
  std::optional<Slot> Put(std::string_view bytes);
  void Free(const Slot& slot);

 private:
  SharedRowSegment(std::string name, std::string key, int fd, char* memory, int64_t size);
  // Where a slot of `bytes` fits; -1: nowhere.
  int64_t FindRoom(int64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string name_, key_;
  const int fd_;
  char* const memory_;
  const int64_t size_;
  absl::Mutex mutex_;
  bool linked_ ABSL_GUARDED_BY(mutex_) = true;
  uint64_t last_stamp_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int64_t, int64_t> used_ ABSL_GUARDED_BY(mutex_);  // offset of each slot to its end
};

// Removes segments in /dev/shm whose processes have ended and that this user owns.
void RemoveStaleSegments();

}  // namespace aerie
