// Unix sockets of a listener: none is taken from a server that lives, and who may connect is set.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace aerie {

// Makes way for a socket at `address` (unix:PATH): one that nobody listens on is removed.
// UNAVAILABLE when somebody does, or something else is in the way. `flag` is where it comes from.
absl::Status ClearSocket(const char* flag, const std::string& address);

// Sockets that the process makes while it lives get these permission bits from the start. The mask
// is the process's: use it while nothing else makes files.
class SocketMode {
 public:
  explicit SocketMode(int32_t mode) : before_(umask(static_cast<mode_t>(0777 & ~mode))) {}
  ~SocketMode() { umask(before_); }
  SocketMode(const SocketMode&) = delete;
  SocketMode& operator=(const SocketMode&) = delete;

 private:
  const mode_t before_;
};

}  // namespace aerie
