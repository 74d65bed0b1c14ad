// SPDX-License-Identifier: Apache-2.0
#include "tests/hub/certificate.hpp"

#include <boost/asio/buffer.hpp>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <stdexcept>

namespace modeld::test {
namespace {

constexpr long k_half_year = 182L * 24 * 3600; // seconds

template <class T, void (*Free)(T*)>
struct Freer {
  void operator()(T* object) const { Free(object); }
};
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY, EVP_PKEY_free>>;
using Cert = std::unique_ptr<X509, Freer<X509, X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freer<X509_EXTENSION, X509_EXTENSION_free>>;

void require(bool ok) {
  if (!ok) throw std::runtime_error("making a certificate failed");
}

template <class Write>
std::string to_pem(Write write) {
  const std::unique_ptr<BIO, int (*)(BIO*)> bio(BIO_new(BIO_s_mem()), BIO_free);
  require(bio && write(bio.get()) == 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

void add_extension(X509* certificate, int kind, const std::string& value) {
  const Extension extension(X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str()));
  require(extension && X509_add_ext(certificate, extension.get(), -1) == 1);
}

} // namespace

Certificate make_certificate(const std::string& ip_address) {
  const Key key(EVP_EC_gen("P-256"));
  const Cert certificate(X509_new());
  require(key && certificate);
  X509* x = certificate.get();
  X509_set_version(x, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
  X509_gmtime_adj(X509_getm_notBefore(x), -k_half_year);
  X509_gmtime_adj(X509_getm_notAfter(x), k_half_year);
  X509_set_pubkey(x, key.get());
  X509_NAME* name = X509_get_subject_name(x);
  const std::string common = "modeld-test-hub";
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(common.c_str()), -1, -1, 0);
  X509_set_issuer_name(x, name);
  add_extension(x, NID_basic_constraints, "critical,CA:TRUE");
  add_extension(x, NID_subject_alt_name, "IP:" + ip_address);
  require(X509_sign(x, key.get(), EVP_sha256()) > 0);
  return {to_pem([&](BIO* bio) { return PEM_write_bio_X509(bio, x); }), to_pem([&](BIO* bio) {
            return PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

std::unique_ptr<boost::asio::ssl::context> make_tls_context(const Certificate& certificate) {
  namespace ssl = boost::asio::ssl;
  auto context = std::make_unique<ssl::context>(ssl::context::tls_server);
  context->use_certificate_chain(boost::asio::buffer(certificate.certificate_pem));
  context->use_private_key(boost::asio::buffer(certificate.key_pem), ssl::context::pem);
  return context;
}

} // namespace modeld::test
