#include "server/transport/tls_files.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "server/transport/watched_files.h"

namespace aerie {
namespace {

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};

std::unique_ptr<BIO, Free> Open(const std::string& pem) {
  return std::unique_ptr<BIO, Free>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// A passphrase is asked for at the terminal unless somebody answers.
int NoPassphrase(char*, int, int, void*) { return -1; }

std::unique_ptr<X509, Free> ReadCertificate(const std::string& pem) {
  const auto bio = Open(pem);
  return std::unique_ptr<X509, Free>(PEM_read_bio_X509(bio.get(), nullptr, &NoPassphrase, nullptr));
}

absl::Status Bad(const char* flag, const std::string& path, const char* seen, const char* remedy) {
  ERR_clear_error();
  return absl::InvalidArgumentError(absl::StrCat(flag, " ", path, " ", seen, "; ", remedy));
}

}  // namespace

absl::StatusOr<TlsFiles> ReadTlsFiles(const SecurityOptions& options) {
  TlsFiles files;
  AERIE_ASSIGN_OR_RETURN(files.certificates, ReadPublicFile("--tls-cert", options.tls_cert));
  AERIE_ASSIGN_OR_RETURN(files.key, ReadSecretFile("--tls-key", options.tls_key));
  const auto certificate = ReadCertificate(files.certificates);
  if (certificate == nullptr) {
    return Bad("--tls-cert", options.tls_cert, "holds no certificate",
               "expected PEM, the server's own certificate first; give that file");
  }
  const auto bio = Open(files.key);
  const std::unique_ptr<EVP_PKEY, Free> key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, &NoPassphrase, nullptr));
  if (key == nullptr) {
    return Bad("--tls-key", options.tls_key, "holds no private key that can be read",
               "expected PEM without a passphrase; give that file");
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return Bad("--tls-key", options.tls_key, "is not the key of the certificate in --tls-cert",
               "expected the two to belong together; replace both");
  }
  if (X509_cmp_current_time(X509_get0_notAfter(certificate.get())) < 0) {
    return Bad("--tls-cert", options.tls_cert, "has expired",
               "expected one that is valid now; renew it");
  }
  if (!options.mutual_tls()) return files;
  AERIE_ASSIGN_OR_RETURN(files.client_ca, ReadPublicFile("--tls-client-ca", options.tls_client_ca));
  if (ReadCertificate(files.client_ca) == nullptr) {
    return Bad("--tls-client-ca", options.tls_client_ca, "holds no certificate",
               "expected PEM, the certificates that sign those of clients; give that file");
  }
  return files;
}

}  // namespace aerie
