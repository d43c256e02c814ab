#include "tests/support/certificate.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/result.h"

namespace perseus::testing {

Certificate make_certificate(const std::string& folder, long ends_in_s) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> made(X509_new(), X509_free);
  X509_set_version(made.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
  constexpr long hour_s = 3600;
  X509_gmtime_adj(X509_getm_notBefore(made.get()), std::min(0L, ends_in_s) - hour_s);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), ends_in_s);
  X509_set_pubkey(made.get(), key.get());
  X509_NAME* const name = X509_get_subject_name(made.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
  X509_set_issuer_name(made.get(), name);
  X509_EXTENSION* const names =
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1,DNS:localhost");
  X509_add_ext(made.get(), names, -1);
  X509_EXTENSION_free(names);
  PERSEUS_CHECK(X509_sign(made.get(), key.get(), EVP_sha256()) > 0, "a signed certificate");

  Certificate certificate{folder + "/certificate.pem", folder + "/key.pem"};
  std::FILE* file = std::fopen(certificate.file.c_str(), "w");
  PERSEUS_CHECK(file != nullptr && PEM_write_X509(file, made.get()) == 1, "the certificate's file");
  std::fclose(file);
  file = std::fopen(certificate.key_file.c_str(), "w");
  PERSEUS_CHECK(file != nullptr && PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1,
                "the key's file");
  std::fclose(file);
  return certificate;
}

}  // namespace perseus::testing
