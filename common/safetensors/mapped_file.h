// A whole file, mapped read-only.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace aerie {

// Owns the mapping; the view stays valid when the object is moved. Immutable: threads may share it.
// A file that is cut while it is mapped ends the process with SIGBUS, so whatever reads it for long
// copies it first.
class MappedFile {
 public:
  // NOT_FOUND, PERMISSION_DENIED, or INVALID_ARGUMENT when it is no regular file; each with the
  // path.
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::string_view bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::string_view bytes) : bytes_(bytes) {}
  std::string_view bytes_;  // empty: nothing mapped
};

// Lets the system drop the pages of a mapped file that lie within `bytes`, so that reading a large
// file once does not fill memory with it. They are read again when they are touched again.
void ReleasePages(std::string_view bytes);

// The content of a small file. As MappedFile::Open, and INVALID_ARGUMENT above `max_bytes`.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t max_bytes);

}  // namespace aerie
