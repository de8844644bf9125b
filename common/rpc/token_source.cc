#include "common/rpc/token_source.h"

#include <utility>

#include "common/rpc/channel_files.h"

namespace aerie::rpc {

TokenSource::TokenSource(std::string token, std::string path)
    : path_(std::move(path)), token_(std::move(token)) {}

std::string TokenSource::Current() {
  // Read without the lock: calls must not wait for each other's files.
  absl::StatusOr<std::string> now = ReadTokenFile(path_);
  absl::MutexLock lock(&mutex_);
  if (!path_.empty() && now.ok()) token_ = *std::move(now);
  return token_;
}

}  // namespace aerie::rpc
