#include "server/transport/watched_tls.h"

#include <utility>
#include <vector>

#include "common/log.h"
#include "common/status_macros.h"
#include "server/transport/watched_files.h"

namespace aerie {
namespace {

std::string StampOfFiles(const SecurityOptions& options) {
  std::vector<std::string> paths = {options.tls_cert, options.tls_key};
  if (options.mutual_tls()) paths.push_back(options.tls_client_ca);
  return StampOf(paths);
}

}  // namespace

absl::StatusOr<std::unique_ptr<WatchedTls>> WatchedTls::Open(const SecurityOptions& options) {
  std::string stamp = StampOfFiles(options);
  AERIE_ASSIGN_OR_RETURN(TlsFiles files, ReadTlsFiles(options));
  return std::unique_ptr<WatchedTls>(new WatchedTls(options, std::move(stamp), std::move(files)));
}

WatchedTls::WatchedTls(const SecurityOptions& options, std::string stamp, TlsFiles files)
    : options_(options),
      stamp_(std::move(stamp)),
      files_(std::make_shared<const TlsFiles>(std::move(files))) {}

std::shared_ptr<const TlsFiles> WatchedTls::Current() {
  absl::MutexLock lock(&mutex_);
  std::string stamp = StampOfFiles(options_);
  if (stamp == stamp_) return files_;
  stamp_ = std::move(stamp);
  absl::StatusOr<TlsFiles> files = ReadTlsFiles(options_);
  if (files.ok()) {
    files_ = std::make_shared<const TlsFiles>(*std::move(files));
    AERIE_LOG(info, "read the changed TLS files; new connections get {}", options_.tls_cert);
  } else {
    AERIE_LOG(error, "the TLS files as they were before stay in force: {}",
              std::string(files.status().message()));
  }
  return files_;
}

}  // namespace aerie
