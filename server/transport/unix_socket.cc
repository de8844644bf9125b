#include "server/transport/unix_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace aerie {
namespace {

std::string PathOf(const std::string& address) {
  absl::string_view path = address;
  absl::ConsumePrefix(&path, "unix:");
  if (absl::StartsWith(path, "///")) path.remove_prefix(2);  // unix:///run/aerie.sock
  return std::string(path);
}

}  // namespace

absl::Status ClearSocket(const char* flag, const std::string& address) {
  const std::string path = PathOf(address);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof(name.sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " ", address, " has a path of ", path.size(), " bytes; expected below ",
                     sizeof(name.sun_path), ", as sockets have; choose a shorter one"));
  }
  struct stat about {};
  if (lstat(path.c_str(), &about) != 0) return absl::OkStatus();
  const auto in_the_way = [&](const char* what, const char* remedy) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", address, ": ", what,
                                               "; expected no such file, or a socket that was left "
                                               "behind; ",
                                               remedy, ", or change ", flag));
  };
  if (!S_ISSOCK(about.st_mode)) {
    return in_the_way("there is a file that is no socket", "move it away");
  }
  std::memcpy(name.sun_path, path.c_str(), path.size() + 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return absl::OkStatus();  // gRPC will say why there are no sockets
  const auto close_fd = absl::MakeCleanup([fd] { close(fd); });
  if (connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0 || errno == EAGAIN) {
    return in_the_way("another program listens there", "stop it");
  }
  if (errno == ECONNREFUSED) unlink(path.c_str());
  return absl::OkStatus();
}

}  // namespace aerie
