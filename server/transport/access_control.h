// Whether a call may be made, and by whom: the one place where that is settled.
//
// Every method of every service asks here first. Health is not asked for, so that probes need no
// secret. The token file is looked at on each call and read again when it has changed; one that
// cannot be read leaves the last good one in force, and the log says so once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/server_context.h"
#include "server/transport/security_options.h"
#include "server/transport/token_book.h"

namespace aerie {

// Any thread.
class AccessControl {
 public:
  // Fails as ReadSecretFile and TokenBook::Parse do.
  static absl::StatusOr<std::unique_ptr<AccessControl>> Create(const SecurityOptions& options);

  // The caller's name; empty when nobody is asked. UNAUTHENTICATED: there is no token, or one that
  // nobody has. PERMISSION_DENIED: it is known and has not this role.
  absl::StatusOr<std::string> Admit(const grpc::CallbackServerContext& context, Role role) const;
  // The same of a caller that gRPC does not know: its authorization header, if it has one, and the
  // name in the certificate that it has proved to be its own; empty: it has shown none.
  absl::StatusOr<std::string> AdmitCaller(std::optional<std::string_view> authorization,
                                          const std::string& certificate, Role role) const;

 private:
  explicit AccessControl(const SecurityOptions& options) : options_(options) {}
  std::shared_ptr<const TokenBook> Book() const;

  const SecurityOptions options_;
  mutable absl::Mutex mutex_;
  mutable std::string stamp_ ABSL_GUARDED_BY(mutex_);
  mutable std::shared_ptr<const TokenBook> book_ ABSL_GUARDED_BY(mutex_);
};

// Whom the limits of server/transport/client_limits.h are about: `name`, what the caller was
// admitted as, or, where nobody is asked, the host of `peer`, which is gRPC's text for where a call
// comes from. What a client calls itself counts for nothing here: it may have many names.
std::string AccountOf(const std::string& name, const std::string& peer);

// `*claimed`, what a client calls itself, becomes `name`, what it was admitted as, when it is
// empty. PERMISSION_DENIED when it claims another: its quota would be another's.
absl::Status SettleClient(const std::string& name, std::string* claimed);

}  // namespace aerie
