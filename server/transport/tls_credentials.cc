#include "server/transport/tls_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/check.h"
#include "common/log.h"
#include "server/transport/tls_files.h"
#include "server/transport/watched_files.h"

namespace aerie {
namespace {

// Tells gRPC at each handshake whether there are new files. Any thread.
class Certificates {
 public:
  Certificates(const SecurityOptions& options, std::string stamp, TlsFiles files)
      : options_(options), stamp_(std::move(stamp)), fresh_(std::move(files)) {}

  grpc_ssl_certificate_config_reload_status Fetch(grpc_ssl_server_certificate_config** config) {
    absl::MutexLock lock(&mutex_);
    if (!first_) Look();
    first_ = false;
    if (fresh_.certificates.empty()) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair{fresh_.key.c_str(), fresh_.certificates.c_str()};
    // gRPC insists on roots even when it asks for no client certificate, and then verifies nothing
    // with them.
    const std::string& roots = options_.mutual_tls() ? fresh_.client_ca : fresh_.certificates;
    *config = grpc_ssl_server_certificate_config_create(roots.c_str(), &pair, 1);
    fresh_ = TlsFiles{};
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

 private:
  void Look() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::string stamp = Stamp(options_);
    if (stamp == stamp_) return;
    stamp_ = std::move(stamp);
    absl::StatusOr<TlsFiles> files = ReadTlsFiles(options_);
    if (files.ok()) {
      fresh_ = *std::move(files);
      AERIE_LOG(info, "read the changed TLS files; new connections get {}", options_.tls_cert);
    } else {
      AERIE_LOG(error, "the TLS files as they were before stay in force: {}",
                std::string(files.status().message()));
    }
  }

 public:
  static std::string Stamp(const SecurityOptions& options) {
    std::vector<std::string> paths = {options.tls_cert, options.tls_key};
    if (options.mutual_tls()) paths.push_back(options.tls_client_ca);
    return StampOf(paths);
  }

 private:
  const SecurityOptions options_;
  absl::Mutex mutex_;
  std::string stamp_ ABSL_GUARDED_BY(mutex_);
  TlsFiles fresh_ ABSL_GUARDED_BY(mutex_);  // empty: gRPC has them
  bool first_ ABSL_GUARDED_BY(mutex_) = true;
};

grpc_ssl_certificate_config_reload_status FetchCertificates(
    void* certificates, grpc_ssl_server_certificate_config** config) {
  return static_cast<Certificates*>(certificates)->Fetch(config);
}

// gRPC's C++ layer has no door to the C core's fetcher of certificates; this is one.
class FetchedCredentials final : public grpc::ServerCredentials {
 public:
  FetchedCredentials(bool mutual, std::unique_ptr<Certificates> certificates)
      : certificates_(std::move(certificates)),
        credentials_(grpc_ssl_server_credentials_create_with_options(
            grpc_ssl_server_credentials_create_options_using_config_fetcher(
                mutual ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                       : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
                &FetchCertificates, certificates_.get()))) {
    AERIE_CHECK(credentials_ != nullptr) << "gRPC takes no fetcher of certificates";
  }
  ~FetchedCredentials() override { grpc_server_credentials_release(credentials_); }

  // Calls are admitted in access_control.h, the same for TLS and without.
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {
    AERIE_CHECK(false) << "not used here";
  }

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  const std::unique_ptr<Certificates> certificates_;
  grpc_server_credentials* const credentials_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> TlsCredentials(
    const SecurityOptions& options) {
  std::string stamp = Certificates::Stamp(options);
  absl::StatusOr<TlsFiles> files = ReadTlsFiles(options);
  if (!files.ok()) return files.status();
  return std::make_shared<FetchedCredentials>(
      options.mutual_tls(),
      std::make_unique<Certificates>(options, std::move(stamp), *std::move(files)));
}

}  // namespace aerie
