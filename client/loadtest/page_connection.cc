#include "client/loadtest/page_connection.h"

#include <httplib.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "common/status_macros.h"

namespace aerie::loadtest {
namespace {

using httplib::Error;

constexpr time_t kPatienceSeconds = 10;

httplib::Result Get(httplib::ClientImpl& client, const httplib::Headers& headers) {
  client.set_connection_timeout(kPatienceSeconds);
  client.set_read_timeout(kPatienceSeconds);
  client.set_write_timeout(kPatienceSeconds);
  return client.Get("/metrics", headers);
}

// Why OpenSSL failed last on this thread, in brackets; empty: it did not.
std::string OpenSslReason() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason == nullptr ? "" : absl::StrCat(" (", reason, ")");
}

absl::Status UseFiles(const rpc::ChannelFiles& files, httplib::SSLClient* client) {
  SSL_CTX* const context = client->ssl_context();
  AERIE_CHECK(context != nullptr) << "OpenSSL makes no context" << OpenSslReason();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  // A passphrase is asked for at the terminal unless somebody answers.
  SSL_CTX_set_default_passwd_cb(context, [](char*, int, int, void*) { return -1; });
  if (!files.tls_ca.empty()) {
    client->set_ca_cert_path(files.tls_ca);
    // As calls take it: the certificates may be of those between the root and the server's.
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), X509_V_FLAG_PARTIAL_CHAIN);
  }
  if (files.tls_cert.empty()) return absl::OkStatus();
  if (SSL_CTX_use_certificate_chain_file(context, files.tls_cert.c_str()) == 1 &&
      SSL_CTX_use_PrivateKey_file(context, files.tls_key.c_str(), SSL_FILETYPE_PEM) == 1) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--tls-cert ", files.tls_cert, " and --tls-key ", files.tls_key,
                   " cannot be used", OpenSslReason(),
                   "; expected a PEM certificate and its key without a passphrase; correct the "
                   "files or their paths"));
}

// The addresses of `host` in numbers, in the order in which to try them.
std::vector<std::string> Resolve(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  std::vector<std::string> out;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return out;
  const auto free_found = absl::MakeCleanup([found] { freeaddrinfo(found); });
  for (const addrinfo* next = found; next != nullptr; next = next->ai_next) {
    char text[NI_MAXHOST] = {};
    if (getnameinfo(next->ai_addr, next->ai_addrlen, text, sizeof(text), nullptr, 0,
                    NI_NUMERICHOST) == 0) {
      out.emplace_back(text);
    }
  }
  return out;
}

// The library takes one name for the certificate's and the host's. Under the former it finds the
// latter in a table, which has to say it in numbers.
httplib::Result GetByName(const std::string& name, const std::string& host,
                          const httplib::Headers& headers, httplib::SSLClient* client) {
  httplib::Result answer(nullptr, Error::Connection);
  for (const std::string& numbers : Resolve(host)) {
    client->set_hostname_addr_map({{name, numbers}});
    answer = Get(*client, headers);
    if (answer.error() != Error::Connection && answer.error() != Error::ConnectionTimeout) break;
  }
  return answer;
}

struct Failure {
  std::string seen, remedy;
};

Failure OfCertificate(const rpc::ChannelFiles& files, const std::string& name, long verified) {
  const std::string seen = verified == X509_V_OK
                               ? absl::StrCat("its certificate does not name ", name)
                               : absl::StrCat("its certificate is not to be trusted (",
                                              X509_verify_cert_error_string(verified), ")");
  if (files.tls_ca.empty()) {
    return {seen, absl::StrCat("expected one that names ", name,
                               " and that an authority of this system has signed; give the "
                               "certificates that sign it in --tls-ca FILE")};
  }
  return {seen, absl::StrCat("expected one that names ", name, " and that those of --tls-ca ",
                             files.tls_ca, " have signed; correct --tls-ca or --tls-server-name")};
}

Failure OverTls(const rpc::ChannelFiles& files, Error error) {
  const std::string seen = absl::StrCat(httplib::to_string(error), OpenSslReason());
  if (error == Error::SSLLoadingCerts) {
    return {seen, absl::StrCat("expected PEM certificates in --tls-ca ", files.tls_ca,
                               "; correct the file or its path")};
  }
  return {seen, absl::StrCat("expected a page over TLS; leave https:// out if the server has no "
                             "--metrics-tls, and if it asks for a certificate, ",
                             files.tls_cert.empty() ? "give --tls-cert and --tls-key"
                                                    : "give one in --tls-cert that it trusts")};
}

Failure WithoutTls(Error error) {
  const bool hung_up = error == Error::Read || error == Error::Write;
  return {httplib::to_string(error),
          absl::StrCat("expected the server's metrics page; give the HOST:PORT of its "
                       "--metrics-listen to --metrics, ",
                       hung_up ? "with https:// before it if the server has --metrics-tls, " : "",
                       "or leave it out")};
}

}  // namespace

absl::StatusOr<PageAnswer> GetPage(const PageAddress& address, const rpc::ChannelFiles& files,
                                   const std::string& token) {
  httplib::Headers headers;
  if (!token.empty()) headers.emplace("Authorization", absl::StrCat("Bearer ", token));
  const auto answered = [](const httplib::Result& answer) {
    return PageAnswer{answer->status, answer->body};
  };
  const auto failed = [&address](const Failure& failure) {
    return absl::UnavailableError(
        absl::StrCat(address.Url(), ": ", failure.seen, "; ", failure.remedy));
  };
  if (!address.tls) {
    httplib::ClientImpl client(address.host, address.port);
    const httplib::Result answer = Get(client, headers);
    if (answer) return answered(answer);
    return failed(WithoutTls(answer.error()));
  }
  const bool renamed = !files.tls_server_name.empty();
  const std::string name = renamed ? files.tls_server_name : address.host;
  ERR_clear_error();  // of whatever this thread did before
  httplib::SSLClient client(name, address.port);
  AERIE_RETURN_IF_ERROR(UseFiles(files, &client));
  const httplib::Result answer =
      renamed ? GetByName(name, address.host, headers, &client) : Get(client, headers);
  if (answer) return answered(answer);
  switch (answer.error()) {
    case Error::SSLServerVerification:
      return failed(OfCertificate(files, name, client.get_openssl_verify_result()));
    case Error::SSLConnection:
    case Error::SSLLoadingCerts:
    case Error::Read:
    case Error::Write:
      return failed(OverTls(files, answer.error()));
    default:
      return failed(WithoutTls(answer.error()));
  }
}

}  // namespace aerie::loadtest
