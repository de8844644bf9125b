// The TLS files of a listener as they are now: replaced while the server runs, without a restart.
//
// What one would get wrong: new files are checked first (do they parse, does the key fit), and as
// long as they are no good the old ones stay in force. The log says either, once.
#pragma once

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/transport/security_options.h"
#include "server/transport/tls_files.h"

namespace aerie {

// Any thread.
class WatchedTls {
 public:
  // `options.tls()` must hold. Fails as ReadTlsFiles does.
  static absl::StatusOr<std::unique_ptr<WatchedTls>> Open(const SecurityOptions& options);

  // Looks whether they have changed. The same pointer as long as the files in force are the same.
  std::shared_ptr<const TlsFiles> Current();

 private:
  WatchedTls(const SecurityOptions& options, std::string stamp, TlsFiles files);

  const SecurityOptions options_;
  absl::Mutex mutex_;
  std::string stamp_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const TlsFiles> files_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace aerie
