#include "tests/client/loadtest/test_authority.h"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "common/check.h"

namespace aerie::loadtest {
namespace {

constexpr long kDay = 24 * 60 * 60;

std::string TextOf(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<size_t>(size));
  BIO_free(bio);
  return text;
}

std::string PemOf(X509* certificate) {
  BIO* const bio = BIO_new(BIO_s_mem());
  AERIE_CHECK(PEM_write_bio_X509(bio, certificate) == 1);
  return TextOf(bio);
}

std::string PemOf(EVP_PKEY* key) {
  BIO* const bio = BIO_new(BIO_s_mem());
  AERIE_CHECK(PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
  return TextOf(bio);
}

}  // namespace

TestAuthority::TestAuthority() : key_(EVP_EC_gen("P-256")) {
  certificate_ = Sign(key_.get(), "authority", NID_basic_constraints, "critical,CA:TRUE");
}

TestAuthority::Certificate TestAuthority::Sign(EVP_PKEY* key, const std::string& name,
                                               int extension, const std::string& value) const {
  Certificate out(X509_new());
  AERIE_CHECK(key != nullptr && out != nullptr);
  X509_set_version(out.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(out.get()), certificate_ == nullptr ? 1 : 2);
  X509_gmtime_adj(X509_getm_notBefore(out.get()), -kDay);
  X509_gmtime_adj(X509_getm_notAfter(out.get()), kDay);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(out.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(out.get(),
                       X509_get_subject_name(certificate_ ? certificate_.get() : out.get()));
  X509_set_pubkey(out.get(), key);
  X509_EXTENSION* const made = X509V3_EXT_conf_nid(nullptr, nullptr, extension, value.c_str());
  AERIE_CHECK(made != nullptr) << value;
  X509_add_ext(out.get(), made, -1);
  X509_EXTENSION_free(made);
  AERIE_CHECK(X509_sign(out.get(), key_.get(), EVP_sha256()) > 0);
  return out;
}

TestCertificate TestAuthority::Issue(const std::string& names) const {
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate = Sign(key.get(), "issued", NID_subject_alt_name, names);
  return {PemOf(certificate.get()), PemOf(key.get())};
}

std::string TestAuthority::Pem() const { return PemOf(certificate_.get()); }

}  // namespace aerie::loadtest
