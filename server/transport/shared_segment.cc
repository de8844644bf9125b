#include "server/transport/shared_segment.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/error_detail.h"
#include "common/shared_rows_layout.h"
#include "common/status_macros.h"

namespace aerie {
namespace {

static_assert(std::endian::native == std::endian::little, "stamps are read as they lie");

absl::Status Invalid(const std::string& message) {
  return WithReason(absl::InvalidArgumentError(message), kReasonSharedMemoryInvalid);
}

absl::Status OutOfBounds(const std::string& message) {
  return WithReason(absl::InvalidArgumentError(message), kReasonSharedMemoryBounds);
}

absl::Status CheckName(const std::string& name) {
  const size_t prefix = kSegmentNamePrefix.size();
  const bool fits =
      name.compare(0, prefix, kSegmentNamePrefix) == 0 && name.size() > prefix &&
      name.size() <= prefix + kMostNameBytes &&
      std::all_of(name.begin() + static_cast<std::ptrdiff_t>(prefix), name.end(), [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' ||
               c == '_';
      });
  if (fits) return absl::OkStatus();
  // Cut: it comes from outside and goes into a message.
  return Invalid(absl::StrCat("the segment's name is \"", absl::CHexEscape(name.substr(0, 96)),
                              "\"; expected \"/aerie-\" and 1 to ", kMostNameBytes,
                              " letters, digits, dots, dashes or underscores; name it so"));
}

// Reads up to `count` bytes at `offset`; fewer only where the segment ends.
int64_t ReadAt(int fd, char* out, int64_t count, int64_t offset) {
  int64_t done = 0;
  while (done < count) {
    const ssize_t got = pread(fd, out + done, static_cast<size_t>(count - done), offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += got;
  }
  return done;
}

absl::Status CheckFile(const std::string& name, const struct stat& about) {
  if (!S_ISREG(about.st_mode)) {
    return Invalid(absl::StrCat(name,
                                " is no shared memory segment; expected what shm_open makes; "
                                "choose a name that nothing else has"));
  }
  if ((about.st_mode & 0027) != 0) {
    return Invalid(absl::StrFormat(
        "%s has the permissions 0%o; expected 0600 or 0640, so that nobody but its owner can write "
        "what is drafted from, and no stranger read it; make it with one of these",
        name, about.st_mode & 0777));
  }
  if (about.st_size < kLeastSegmentBytes) {
    return Invalid(absl::StrCat(name, " has ", about.st_size, " bytes; expected at least ",
                                kLeastSegmentBytes, "; size it before it is registered"));
  }
  return absl::OkStatus();
}

absl::Status CheckHeader(const std::string& name, std::string_view key, int fd) {
  std::array<char, kSegmentHeaderBytes> header{};
  const int64_t read = ReadAt(fd, header.data(), kSegmentHeaderBytes, 0);
  // In one time whatever differs: a key is a secret.
  const bool fits =
      read == kSegmentHeaderBytes && key.size() == kSegmentKeyBytes &&
      CRYPTO_memcmp(header.data() + kSegmentMagic.size(), key.data(), key.size()) == 0;
  if (fits && std::string_view(header.data(), kSegmentMagic.size()) == kSegmentMagic) {
    return absl::OkStatus();
  }
  return Invalid(absl::StrCat(name, " does not begin with ", std::string(kSegmentMagic),
                              " and the key of the call, of ", key.size(),
                              " bytes; expected a key "
                              "of ",
                              kSegmentKeyBytes,
                              " bytes that stands in the segment; write "
                              "it there before it is registered"));
}

bool Locked(int fd) {
  if (flock(fd, LOCK_SH | LOCK_NB) != 0) return errno == EWOULDBLOCK;
  flock(fd, LOCK_UN);
  return false;
}

}  // namespace

absl::StatusOr<std::unique_ptr<const SharedSegment>> SharedSegment::Open(const std::string& name,
                                                                         std::string_view key) {
  AERIE_RETURN_IF_ERROR(CheckName(name));
  // Not blocking: what has the name may be a pipe.
  const int fd = shm_open(name.c_str(), O_RDONLY | O_NONBLOCK, 0);
  if (fd < 0) {
    return Invalid(absl::StrCat(
        "the segment ", name, " cannot be opened (", std::strerror(errno),
        "); expected it in the server's /dev/shm, and readable for it; let worker and server share "
        "that folder, and a user, or a group with permissions 0640"));
  }
  auto close_fd = absl::MakeCleanup([fd] { close(fd); });
  struct stat about {};
  if (fstat(fd, &about) != 0) return Invalid(absl::StrCat(name, ": ", std::strerror(errno)));
  AERIE_RETURN_IF_ERROR(CheckFile(name, about));
  AERIE_RETURN_IF_ERROR(CheckHeader(name, key, fd));
  if (!Locked(fd)) {
    return Invalid(absl::StrCat("nobody holds a lock on ", name,
                                "; expected an exclusive flock(2) of its worker, by which the "
                                "server knows that it lives; lock it and keep it open"));
  }
  std::move(close_fd).Cancel();
  return std::unique_ptr<const SharedSegment>(new SharedSegment(fd, about.st_size));
}

SharedSegment::~SharedSegment() { close(fd_); }

bool SharedSegment::IsHeld() const { return Locked(fd_); }

absl::Status SharedSegment::CheckSlot(const v1::SharedRows& rows, int64_t max_bytes) const {
  const auto size = static_cast<uint64_t>(size_);
  if (rows.offset() % kSlotAlignment != 0 || rows.offset() < kSegmentHeaderBytes) {
    return OutOfBounds(absl::StrCat("hidden_states.shared has the offset ", rows.offset(),
                                    "; expected a multiple of ", kSlotAlignment, " from ",
                                    kSegmentHeaderBytes, " on; align the slot"));
  }
  // Nothing is added to what comes from outside: it may be close to 2^64.
  if (rows.offset() > size - kSlotHeaderBytes ||
      rows.length() > size - kSlotHeaderBytes - rows.offset()) {
    return OutOfBounds(absl::StrCat(
        "hidden_states.shared has ", rows.length(), " bytes of rows behind offset ", rows.offset(),
        " and the slot's ", kSlotHeaderBytes, "; expected an end within the segment's ", size_,
        " bytes, as many as it had when it was registered; register a larger one, or send the rows "
        "in the message"));
  }
  if (rows.length() > static_cast<uint64_t>(max_bytes)) {
    return WithReason(absl::ResourceExhaustedError(absl::StrCat(
                          "hidden_states.shared has ", rows.length(),
                          " bytes of rows; expected at most ", max_bytes,
                          ", as in a message; send the rows in several calls with k = 0 on all but "
                          "the last, or raise the server's --max-message-bytes")),
                      kReasonMessageTooLarge);
  }
  if (rows.stamp() == 0) {
    return Invalid(
        "hidden_states.shared has the stamp 0; expected the slot's, above 0; write a "
        "new one behind the rows");
  }
  return absl::OkStatus();
}

absl::StatusOr<SharedSegment::Buffer> SharedSegment::NewCopy(int64_t bytes) const {
  const int64_t copied = copied_->fetch_add(bytes) + bytes;
  if (copied > kMostCopies * size_) {
    copied_->fetch_sub(bytes);
    ErrorDetail detail;
    detail.reason = kReasonSharedMemoryQuota;
    detail.retry_after = absl::Milliseconds(10);
    return WithDetail(absl::ResourceExhaustedError(absl::StrCat(
                          "calls that wait would hold ", copied, " bytes of a segment of ", size_,
                          "; expected at most ", kMostCopies,
                          " times as many as it has; let fewer calls wait, "
                          "or register a larger segment")),
                      detail);
  }
  // Not filled with zeroes first: that would be a second pass over the memory.
  return Buffer(new char[static_cast<size_t>(bytes)], [count = copied_, bytes](const char* memory) {
    delete[] memory;
    count->fetch_sub(bytes);
  });
}

absl::StatusOr<SharedBytes> SharedSegment::Read(const v1::SharedRows& rows,
                                                int64_t max_bytes) const {
  AERIE_RETURN_IF_ERROR(CheckSlot(rows, max_bytes));
  const auto offset = static_cast<int64_t>(rows.offset());
  const auto length = static_cast<int64_t>(rows.length());
  AERIE_ASSIGN_OR_RETURN(const Buffer owner, NewCopy(length));
  int64_t read = ReadAt(fd_, owner.get(), length, offset + kSlotHeaderBytes);
  std::atomic_thread_fence(std::memory_order_acquire);
  uint64_t stamp = 0;
  if (read == length) read += ReadAt(fd_, reinterpret_cast<char*>(&stamp), sizeof(stamp), offset);
  if (read != length + static_cast<int64_t>(sizeof(stamp))) {
    return OutOfBounds(absl::StrCat("the segment of hidden_states.shared ends before the slot at ",
                                    offset, "; expected it to keep the ", size_,
                                    " bytes that it was registered with; do not truncate "
                                    "it while it is registered"));
  }
  if (stamp != rows.stamp()) {
    return WithReason(absl::AbortedError(absl::StrCat(
                          "the slot at ", offset, " has the stamp ", stamp,
                          "; expected that of the call, ", rows.stamp(),
                          ": it holds other rows by now; write no slot anew whose call is still "
                          "wanted")),
                      kReasonSharedMemoryChanged);
  }
  return SharedBytes{std::string_view(owner.get(), static_cast<size_t>(length)), owner};
}

}  // namespace aerie
