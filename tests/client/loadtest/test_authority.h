// A certificate authority of a test's own, whose certificates are good from yesterday to tomorrow.
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace aerie::loadtest {

// PEM.
struct TestCertificate {
  std::string certificate, key;
};

class TestAuthority {
 public:
  TestAuthority();

  // `names` as OpenSSL writes alternative names: "DNS:page.example,IP:127.0.0.1".
  TestCertificate Issue(const std::string& names) const;
  // Its own certificate, PEM.
  std::string Pem() const;

 private:
  struct Free {
    void operator()(X509* certificate) const { X509_free(certificate); }
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  };
  using Certificate = std::unique_ptr<X509, Free>;
  using Key = std::unique_ptr<EVP_PKEY, Free>;

  // Signed by this authority; before it has a certificate, by itself.
  Certificate Sign(EVP_PKEY* key, const std::string& name, int extension,
                   const std::string& value) const;

  Key key_;
  Certificate certificate_;
};

}  // namespace aerie::loadtest
