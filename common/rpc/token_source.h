// A client's token as its file has it now: one that is replaced needs neither a restart nor a new
// connection.
#pragma once

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace aerie::rpc {

// Any thread.
class TokenSource {
 public:
  // `token`: what the file at `path` held when it was first read. No path: the token stays.
  TokenSource(std::string token, std::string path);

  // Reads the file. While it holds no token, the last good one serves.
  std::string Current();

 private:
  const std::string path_;
  absl::Mutex mutex_;
  std::string token_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace aerie::rpc
