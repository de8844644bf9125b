#include "server/transport/access_control.h"

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/error_detail.h"
#include "common/log.h"
#include "common/status_macros.h"
#include "server/transport/watched_files.h"

namespace aerie {
namespace {

absl::Status Unknown(const char* seen) {
  return WithReason(
      absl::UnauthenticatedError(absl::StrCat(
          seen,
          "; expected \"authorization: Bearer TOKEN\" with a token of the server's token "
          "file; give the client its token file (--token-file), or ask who runs the server")),
      kReasonUnauthenticated);
}

absl::Status Denied(const KnownCaller& caller, Role role) {
  return WithReason(
      absl::PermissionDeniedError(absl::StrCat(
          "\"", caller.name, "\" has not the role ", RoleName(role),
          "; expected it for this call; use a token that has it, or have it added in the server's "
          "token file")),
      kReasonPermissionDenied);
}

// The name in the certificate that the client has shown: of its alternative names the first, else
// the common name. Empty: it has shown none.
std::string CertificateName(const grpc::CallbackServerContext& context) {
  const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  if (auth == nullptr || !auth->IsPeerAuthenticated()) return {};
  const std::vector<grpc::string_ref> names = auth->GetPeerIdentity();
  return names.empty() ? std::string() : std::string(names.front().data(), names.front().size());
}

}  // namespace

absl::StatusOr<std::unique_ptr<AccessControl>> AccessControl::Create(
    const SecurityOptions& options) {
  std::unique_ptr<AccessControl> out(new AccessControl(options));
  if (!options.tokens()) return out;
  const std::string stamp = StampOf({options.token_file});
  AERIE_ASSIGN_OR_RETURN(const std::string text,
                         ReadSecretFile("--token-file", options.token_file));
  AERIE_ASSIGN_OR_RETURN(TokenBook book, TokenBook::Parse(text, options.token_file));
  absl::MutexLock lock(&out->mutex_);
  out->stamp_ = stamp;
  out->book_ = std::make_shared<const TokenBook>(std::move(book));
  return out;
}

std::shared_ptr<const TokenBook> AccessControl::Book() const {
  const std::string stamp = StampOf({options_.token_file});
  absl::MutexLock lock(&mutex_);
  if (stamp == stamp_) return book_;
  stamp_ = stamp;
  absl::StatusOr<std::string> text = ReadSecretFile("--token-file", options_.token_file);
  absl::StatusOr<TokenBook> book =
      text.ok() ? TokenBook::Parse(*text, options_.token_file) : text.status();
  if (book.ok()) {
    book_ = std::make_shared<const TokenBook>(*std::move(book));
    AERIE_LOG(info, "read the changed token file {}: {} entries", options_.token_file,
              book_->size());
  } else {
    AERIE_LOG(error, "the token file as it was before stays in force: {}",
              std::string(book.status().message()));
  }
  return book_;
}

absl::StatusOr<std::string> AccessControl::Admit(const grpc::CallbackServerContext& context,
                                                 Role role) const {
  std::optional<std::string_view> authorization;
  const auto found = context.client_metadata().find("authorization");
  if (found != context.client_metadata().end()) {
    authorization.emplace(found->second.data(), found->second.size());
  }
  return AdmitCaller(authorization, CertificateName(context), role);
}

absl::StatusOr<std::string> AccessControl::AdmitCaller(
    std::optional<std::string_view> authorization, const std::string& certificate,
    Role role) const {
  if (!options_.tokens()) return certificate;
  const std::shared_ptr<const TokenBook> book = Book();
  std::optional<KnownCaller> caller;
  if (authorization.has_value()) {
    absl::string_view value(authorization->data(), authorization->size());
    if (!absl::StartsWithIgnoreCase(value, "bearer ")) {
      return Unknown("the call's authorization is of another kind than Bearer");
    }
    value.remove_prefix(7);
    caller = book->FindToken(std::string_view(value.data(), value.size()));
    if (!caller) return Unknown("the call's token is not known");
  } else if (!certificate.empty()) {
    caller = book->FindCertificate(certificate);
    if (!caller) return Unknown("the call has no token, and its certificate's name is not known");
  } else {
    return Unknown("the call has no token");
  }
  if (!caller->May(role)) return Denied(*caller, role);
  return caller->name;
}

std::string AccountOf(const std::string& name, const std::string& peer) {
  if (!name.empty()) return name;
  // "ipv4:10.0.0.7:41234", "ipv6:%5B2001:db8::7%5D:41234", "unix:PATH" or "unix:" alone.
  if (absl::StartsWith(peer, "unix:")) return "unix";
  return peer.substr(0, peer.rfind(':'));
}

absl::Status SettleClient(const std::string& name, std::string* claimed) {
  if (name.empty() || *claimed == name) return absl::OkStatus();
  if (!claimed->empty()) {
    return WithReason(
        absl::PermissionDeniedError(absl::StrCat(
            "client is \"", *claimed, "\" but the call was admitted as \"", name,
            "\"; expected that name or none; leave client out, or use that client's token")),
        kReasonPermissionDenied);
  }
  *claimed = name;
  return absl::OkStatus();
}

}  // namespace aerie
