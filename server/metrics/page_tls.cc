#include "server/metrics/page_tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>
#include <vector>

namespace aerie {
namespace {

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509_STORE* store) const { X509_STORE_free(store); }
  void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

// A passphrase is asked for at the terminal unless somebody answers.
int NoPassphrase(char*, int, int, void*) { return -1; }

Owned<BIO> Open(const std::string& pem) {
  return Owned<BIO>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

std::vector<Owned<X509>> ReadCertificates(const std::string& pem) {
  std::vector<Owned<X509>> out;
  const Owned<BIO> bio = Open(pem);
  while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, &NoPassphrase, nullptr)) {
    out.emplace_back(next);
  }
  ERR_clear_error();  // the end of the text is told as an error
  return out;
}

bool ShowOwn(SSL* connection, const PageTls& tls) {
  const std::vector<Owned<X509>> chain = ReadCertificates(tls.certificates);
  const Owned<BIO> bio = Open(tls.key);
  const Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(bio.get(), nullptr, &NoPassphrase, nullptr));
  if (chain.empty() || key == nullptr) return false;
  SSL_certs_clear(connection);
  if (SSL_use_certificate(connection, chain.front().get()) != 1) return false;
  for (size_t i = 1; i < chain.size(); ++i) {
    if (SSL_add1_chain_cert(connection, chain[i].get()) != 1) return false;
  }
  return SSL_use_PrivateKey(connection, key.get()) == 1;
}

bool AskForTheirs(SSL* connection, const std::string& client_ca) {
  const Owned<X509_STORE> store(X509_STORE_new());
  const std::vector<Owned<X509>> roots = ReadCertificates(client_ca);
  if (store == nullptr || roots.empty()) return false;
  for (const Owned<X509>& root : roots) {
    if (X509_STORE_add_cert(store.get(), root.get()) != 1) return false;
    if (SSL_add_client_CA(connection, root.get()) != 1) return false;
  }
  SSL_set_verify(connection, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return SSL_set1_verify_cert_store(connection, store.get()) == 1;
}

// 1: the handshake goes on.
int OnHandshake(SSL* connection, void* source) {
  const PageTls tls = (*static_cast<const std::function<PageTls()>*>(source))();
  if (!ShowOwn(connection, tls)) return 0;
  return tls.client_ca.empty() || AskForTheirs(connection, tls.client_ca) ? 1 : 0;
}

std::string TextOf(const ASN1_STRING* text) {
  const unsigned char* const bytes = ASN1_STRING_get0_data(text);
  return std::string(reinterpret_cast<const char*>(bytes),
                     static_cast<size_t>(ASN1_STRING_length(text)));
}

}  // namespace

void ServeTls(SSL_CTX& context, const std::function<PageTls()>* source) {
  SSL_CTX_set_min_proto_version(&context, TLS1_2_VERSION);
  // Each connection is a handshake of its own: a resumed one would show no certificate anew.
  SSL_CTX_set_session_cache_mode(&context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(&context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_num_tickets(&context, 0);
  SSL_CTX_set_cert_cb(&context, &OnHandshake, const_cast<std::function<PageTls()>*>(source));
}

std::string PeerName(const SSL* connection) {
  const Owned<X509> certificate(connection == nullptr ? nullptr
                                                      : SSL_get1_peer_certificate(connection));
  if (certificate == nullptr) return {};
  const Owned<GENERAL_NAMES> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS) return TextOf(name->d.dNSName);
  }
  X509_NAME* const subject = X509_get_subject_name(certificate.get());
  const int place = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (place < 0) return {};
  return TextOf(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, place)));
}

}  // namespace aerie
