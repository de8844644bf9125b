#include "common/safetensors/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace aerie {
namespace {

// Closes a descriptor at the end of a scope; a mapping outlives it.
struct Descriptor {
  int value;
  ~Descriptor() { close(value); }
};

}  // namespace

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  const int opened = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (opened < 0) {
    const int code = errno;
    return absl::ErrnoToStatus(
        code, absl::StrCat("cannot open ", path,
                           "; expected a file that this user may read; check the path"));
  }
  const Descriptor descriptor{opened};
  struct stat info {};
  if (fstat(descriptor.value, &info) != 0) {
    const int code = errno;
    return absl::ErrnoToStatus(code, absl::StrCat("cannot inspect ", path));
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is no regular file; expected one; check the path"));
  }
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return MappedFile(std::string_view());  // a mapping cannot be empty
  void* const address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor.value, 0);
  if (address == MAP_FAILED) {
    const int code = errno;
    return absl::ErrnoToStatus(code, absl::StrCat("cannot map ", path, " (", size, " bytes)"));
  }
  return MappedFile(std::string_view(static_cast<const char*>(address), size));
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

void ReleasePages(std::string_view bytes) {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t end = (begin + bytes.size()) / page * page;
  // Only a hint: when it fails, memory stays as full as it was.
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t max_bytes) {
  AERIE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  if (file.bytes().size() > max_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has ", file.bytes().size(), " bytes; expected at most ", max_bytes,
                     "; this is not the file that it is named after"));
  }
  return std::string(file.bytes());
}

}  // namespace aerie
