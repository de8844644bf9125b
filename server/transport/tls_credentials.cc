#include "server/transport/tls_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/check.h"
#include "common/status_macros.h"
#include "server/transport/watched_tls.h"

namespace aerie {
namespace {

// Tells gRPC at each handshake whether there are new files. Any thread.
class Certificates {
 public:
  Certificates(const SecurityOptions& options, std::unique_ptr<WatchedTls> files)
      : mutual_(options.mutual_tls()), files_(std::move(files)) {}

  grpc_ssl_certificate_config_reload_status Fetch(grpc_ssl_server_certificate_config** config) {
    absl::MutexLock lock(&mutex_);
    std::shared_ptr<const TlsFiles> files = files_->Current();
    if (files == told_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    told_ = std::move(files);
    const grpc_ssl_pem_key_cert_pair pair{told_->key.c_str(), told_->certificates.c_str()};
    // gRPC insists on roots even when it asks for no client certificate, and then verifies nothing
    // with them.
    const std::string& roots = mutual_ ? told_->client_ca : told_->certificates;
    *config = grpc_ssl_server_certificate_config_create(roots.c_str(), &pair, 1);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

 private:
  const bool mutual_;
  const std::unique_ptr<WatchedTls> files_;
  absl::Mutex mutex_;
  std::shared_ptr<const TlsFiles> told_ ABSL_GUARDED_BY(mutex_);  // that gRPC has; null: none yet
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
  AERIE_ASSIGN_OR_RETURN(std::unique_ptr<WatchedTls> files, WatchedTls::Open(options));
  return std::make_shared<FetchedCredentials>(
      options.mutual_tls(), std::make_unique<Certificates>(options, std::move(files)));
}

}  // namespace aerie
