#include "server/transport/watched_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace aerie {
namespace {

constexpr size_t kMostBytes = size_t{1} << 20;

absl::Status Unreadable(const char* flag, const std::string& path, int error) {
  return absl::NotFoundError(absl::StrCat(
      flag, " ", path, " cannot be read (", std::strerror(error),
      "); expected a file that the server's user may read; correct the path or its permissions"));
}

absl::StatusOr<std::string> ReadFile(const char* flag, const std::string& path, bool secret) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Unreadable(flag, path, errno);
  const auto close_fd = absl::MakeCleanup([fd] { close(fd); });
  struct stat about {};
  if (fstat(fd, &about) != 0) return Unreadable(flag, path, errno);
  if (!S_ISREG(about.st_mode)) return Unreadable(flag, path, EISDIR);
  if (secret && (about.st_mode & 0007) != 0) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s %s has mode %04o, so every user of this host may use it; expected none for others; "
        "say: chmod o= %s",
        flag, path, about.st_mode & 07777, path));
  }
  std::string content;
  char buffer[4096];
  for (;;) {
    const ssize_t got = read(fd, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Unreadable(flag, path, errno);
    if (got == 0) return content;
    content.append(buffer, static_cast<size_t>(got));
    if (content.size() > kMostBytes) {
      return absl::InvalidArgumentError(absl::StrCat(flag, " ", path, " has more than ", kMostBytes,
                                                     " bytes; expected a few lines; give the "
                                                     "right file"));
    }
  }
}

}  // namespace

absl::StatusOr<std::string> ReadPublicFile(const char* flag, const std::string& path) {
  return ReadFile(flag, path, /*secret=*/false);
}

absl::StatusOr<std::string> ReadSecretFile(const char* flag, const std::string& path) {
  return ReadFile(flag, path, /*secret=*/true);
}

std::string StampOf(const std::vector<std::string>& paths) {
  std::string stamp;
  for (const std::string& path : paths) {
    struct stat about {};
    if (stat(path.c_str(), &about) != 0) {
      absl::StrAppend(&stamp, "gone;");
      continue;
    }
    absl::StrAppend(&stamp, about.st_dev, ":", about.st_ino, ":", about.st_size, ":", about.st_mode,
                    ":", about.st_mtim.tv_sec, ".", about.st_mtim.tv_nsec, ":",
                    about.st_ctim.tv_sec, ".", about.st_ctim.tv_nsec, ";");
  }
  return stamp;
}

}  // namespace aerie
