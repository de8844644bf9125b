#include "client/shared_row_segment.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/shared_rows_layout.h"

namespace aerie {
namespace {

static_assert(std::atomic_ref<uint64_t>::is_always_lock_free, "a stamp is written at once");

constexpr char kFolder[] = "/dev/shm";
constexpr size_t kNameDigits = 32;
constexpr int kTries = 8;

std::string RandomBytes(size_t count) {
  std::random_device random;
  std::string bytes;
  while (bytes.size() < count) {
    const uint32_t word = random();
    bytes.append(reinterpret_cast<const char*>(&word), sizeof(word));
  }
  bytes.resize(count);
  return bytes;
}

std::string NewName() {
  std::string name(kSegmentNamePrefix);
  for (const char byte : RandomBytes(kNameDigits / 2)) {
    absl::StrAppendFormat(&name, "%02x", static_cast<unsigned char>(byte));
  }
  return name;
}

bool LooksLikeOurs(const std::string& file) {
  const std::string prefix(kSegmentNamePrefix.substr(1));
  return file.size() == prefix.size() + kNameDigits &&
         file.compare(0, prefix.size(), prefix) == 0 &&
         file.find_first_not_of("0123456789abcdef", prefix.size()) == std::string::npos;
}

int64_t RoundUp(int64_t bytes) {
  return (bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
}

// New and locked; -1 with errno. Between making and locking it somebody who removes stale segments
// may lock it first; then another name is taken.
int MakeLocked(std::string* name) {
  for (int i = 0; i < kTries; ++i) {
    *name = NewName();
    const int fd = shm_open(name->c_str(), O_CREAT | O_EXCL | O_RDWR, 0600);
    if (fd < 0 && errno == EEXIST) continue;
    if (fd < 0) return -1;
    struct stat about {};
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &about) == 0 && about.st_nlink > 0)
      return fd;
    close(fd);
  }
  errno = EBUSY;
  return -1;
}

std::atomic_ref<uint64_t> StampAt(char* memory, int64_t offset) {
  return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(memory + offset));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SharedRowSegment>> SharedRowSegment::Create(int64_t bytes) {
  RemoveStaleSegments();
  std::string name;
  const int fd = MakeLocked(&name);
  if (fd < 0) {
    return absl::UnavailableError(absl::StrCat(
        "no shared memory segment can be made in ", kFolder, " (", std::strerror(errno),
        "); expected a folder in memory that this user may write to; mount one, or send rows "
        "in messages"));
  }
  auto undo = absl::MakeCleanup([fd, &name] {
    shm_unlink(name.c_str());
    close(fd);
  });
  const int64_t size = std::max(RoundUp(bytes), RoundUp(kLeastSegmentBytes));
  // All at once: a page that the system cannot give later would end the process.
  if (const int error = posix_fallocate(fd, 0, size); error != 0) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a shared memory segment of ", size, " bytes finds no room in ", kFolder, " (",
        std::strerror(error),
        "); expected so much free memory there; give the container a larger /dev/shm, or ask for "
        "less"));
  }
  void* const memory =
      mmap(nullptr, static_cast<size_t>(size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    return absl::UnavailableError(absl::StrCat("a shared memory segment of ", size,
                                               " bytes cannot be mapped (", std::strerror(errno),
                                               "); expected address space for it; ask for less"));
  }
  std::string key = RandomBytes(kSegmentKeyBytes);
  std::memcpy(memory, kSegmentMagic.data(), kSegmentMagic.size());
  std::memcpy(static_cast<char*>(memory) + kSegmentMagic.size(), key.data(), key.size());
  std::move(undo).Cancel();
  return std::unique_ptr<SharedRowSegment>(
      new SharedRowSegment(std::move(name), std::move(key), fd, static_cast<char*>(memory), size));
}

SharedRowSegment::SharedRowSegment(std::string name, std::string key, int fd, char* memory,
                                   int64_t size)
    : name_(std::move(name)), key_(std::move(key)), fd_(fd), memory_(memory), size_(size) {
  // Not from 1: rows that are written over a stamp must not look like it.
  const std::string first = RandomBytes(sizeof(last_stamp_));
  std::memcpy(&last_stamp_, first.data(), sizeof(last_stamp_));
}

SharedRowSegment::~SharedRowSegment() {
  Unlink();
  munmap(memory_, static_cast<size_t>(size_));
  close(fd_);  // and with it the lock, by which the server knows
}

void SharedRowSegment::Unlink() {
  absl::MutexLock lock(&mutex_);
  if (linked_) shm_unlink(name_.c_str());
  linked_ = false;
}

int64_t SharedRowSegment::FindRoom(int64_t bytes) const {
  int64_t offset = kSegmentHeaderBytes;
  for (const auto& [first, end] : used_) {
    if (bytes <= first - offset) return offset;
    offset = end;
  }
  return bytes <= size_ - offset ? offset : -1;
}

std::optional<SharedRowSegment::Slot> SharedRowSegment::Put(std::string_view bytes) {
  Slot slot;
  slot.length = static_cast<int64_t>(bytes.size());
  {
    absl::MutexLock lock(&mutex_);
    if (slot.length > size_) return std::nullopt;
    const int64_t whole = RoundUp(kSlotHeaderBytes + slot.length);
    slot.offset = FindRoom(whole);
    if (slot.offset < 0) return std::nullopt;
    used_.emplace(slot.offset, slot.offset + whole);
    if (++last_stamp_ == 0) ++last_stamp_;
    slot.stamp = last_stamp_;
  }
  std::memcpy(memory_ + slot.offset + kSlotHeaderBytes, bytes.data(), bytes.size());
  StampAt(memory_, slot.offset).store(slot.stamp, std::memory_order_release);
  return slot;
}

void SharedRowSegment::Free(const Slot& slot) {
  absl::MutexLock lock(&mutex_);
  // Before anything is written here again, of whatever size: then a server that has read some of it
  // finds no stamp of its call.
  StampAt(memory_, slot.offset).store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  used_.erase(slot.offset);
}

void RemoveStaleSegments() {
  DIR* const folder = opendir(kFolder);
  if (folder == nullptr) return;
  const auto close_folder = absl::MakeCleanup([folder] { closedir(folder); });
  std::vector<std::string> names;
  while (const dirent* const entry = readdir(folder)) {
    if (LooksLikeOurs(entry->d_name)) names.push_back(absl::StrCat("/", entry->d_name));
  }
  for (const std::string& name : names) {
    const int fd = shm_open(name.c_str(), O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0) continue;
    struct stat about {};
    const bool ours = fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == geteuid();
    // The kernel lets go of a lock when its process ends, in whatever container that ran.
    if (ours && flock(fd, LOCK_EX | LOCK_NB) == 0) shm_unlink(name.c_str());
    close(fd);
  }
}

}  // namespace aerie
