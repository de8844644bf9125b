// A worker's shared memory segment, written by hand so that a test can make any mistake with it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "aerie/v1/draft.pb.h"

namespace aerie {

struct TestSegmentOptions {
  mode_t mode = 0600;
  int64_t size = 1 << 16;
  bool locked = true;
};

// Unlinks its name when it goes. Not thread-safe.
class TestSegment {
 public:
  explicit TestSegment(TestSegmentOptions options = {});
  ~TestSegment();
  TestSegment(const TestSegment&) = delete;
  TestSegment& operator=(const TestSegment&) = delete;

  const std::string& name() const { return name_; }
  const std::string& key() const { return key_; }
  v1::RegisterSharedMemoryRequest Registration() const;

  // Writes a slot and gives what a call says of it, but for the segment's id.
  v1::SharedRows Put(int64_t offset, const std::string& rows, uint64_t stamp);
  void Truncate(int64_t size);
  void Unlink();
  // As the kernel does when the worker is killed.
  void DropLock();

 private:
  std::string name_, key_;
  int fd_ = -1;
};

}  // namespace aerie
