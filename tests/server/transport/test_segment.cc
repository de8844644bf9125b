#include "tests/server/transport/test_segment.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "common/shared_rows_layout.h"

namespace aerie {
namespace {

void WriteAt(int fd, const std::string& bytes, int64_t offset) {
  AERIE_CHECK(pwrite(fd, bytes.data(), bytes.size(), offset) == static_cast<ssize_t>(bytes.size()));
}

}  // namespace

TestSegment::TestSegment(TestSegmentOptions options) {
  static std::atomic<int> count = 0;
  name_ = absl::StrCat(std::string(kSegmentNamePrefix), "test-", getpid(), "-", ++count);
  key_ = absl::StrCat("key-", count.load());
  key_.resize(kSegmentKeyBytes, '.');
  fd_ = shm_open(name_.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600);
  AERIE_CHECK(fd_ >= 0) << name_;
  // Not by shm_open: the umask takes away what a test is about.
  AERIE_CHECK(fchmod(fd_, options.mode) == 0);
  if (options.locked) {
    AERIE_CHECK(flock(fd_, LOCK_EX | LOCK_NB) == 0);
  }
  WriteAt(fd_, std::string(kSegmentMagic) + key_, 0);
  Truncate(options.size);
}

TestSegment::~TestSegment() {
  Unlink();
  close(fd_);
}

v1::RegisterSharedMemoryRequest TestSegment::Registration() const {
  v1::RegisterSharedMemoryRequest request;
  request.set_name(name_);
  request.set_key(key_);
  return request;
}

v1::SharedRows TestSegment::Put(int64_t offset, const std::string& rows, uint64_t stamp) {
  WriteAt(fd_, rows, offset + kSlotHeaderBytes);
  WriteAt(fd_, std::string(reinterpret_cast<const char*>(&stamp), sizeof(stamp)), offset);
  v1::SharedRows shared;
  shared.set_offset(static_cast<uint64_t>(offset));
  shared.set_length(rows.size());
  shared.set_stamp(stamp);
  return shared;
}

void TestSegment::Truncate(int64_t size) { AERIE_CHECK(ftruncate(fd_, size) == 0); }

void TestSegment::Unlink() { shm_unlink(name_.c_str()); }

void TestSegment::DropLock() { AERIE_CHECK(flock(fd_, LOCK_UN) == 0); }

}  // namespace aerie
