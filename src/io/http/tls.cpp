#include "io/http/tls.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <boost/asio/ssl/context.hpp>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>

namespace perseus::http {
namespace {

namespace ssl = boost::asio::ssl;

Status readable(const std::string& file) {
  errno = 0;
  if (std::ifstream(file).good()) return Ok{};
  return Error{ErrorCode::not_found, fmt::format("{}: cannot be read: {}", file, std::strerror(errno))};
}

/// Of TLS 1.2: forward secrecy and authenticated encryption. Those of TLS 1.3 all have both.
constexpr const char* kCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";

Error unusable(const std::string& file, const char* expected, const boost::system::error_code& problem) {
  return {ErrorCode::invalid_input, fmt::format("{}: {} expected (PEM): {}", file, expected, problem.message())};
}

std::optional<double> unix_s(const ASN1_TIME* time) {
  std::tm fields{};
  if (ASN1_TIME_to_tm(time, &fields) != 1) return std::nullopt;
  return static_cast<double>(timegm(&fields));
}

}  // namespace

Result<TlsContext> server_tls(const std::string& certificate_file, const std::string& key_file) {
  for (const std::string& file : {certificate_file, key_file}) {
    if (const Status status = readable(file); !status) return status.error();
  }
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  context->set_options(ssl::context::default_workarounds | ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1);
  SSL_CTX_set_mode(context->native_handle(), SSL_MODE_RELEASE_BUFFERS);  // idle connections keep no buffers
  SSL_CTX_set_session_cache_mode(context->native_handle(),
                                 SSL_SESS_CACHE_OFF);  // clients keep their tickets themselves
  PERSEUS_CHECK(SSL_CTX_set_cipher_list(context->native_handle(), kCiphers) == 1, "SSL_CTX_set_cipher_list failed");
  SSL_CTX_set_options(context->native_handle(), SSL_OP_CIPHER_SERVER_PREFERENCE);
  boost::system::error_code problem;
  context->use_certificate_chain_file(certificate_file, problem);
  if (problem) return unusable(certificate_file, "a certificate chain", problem);
  bool encrypted = false;  // OpenSSL would otherwise ask for the passphrase on the terminal
  context->set_password_callback([&](std::size_t, ssl::context::password_purpose) {
    encrypted = true;
    return std::string();
  });
  context->use_private_key_file(key_file, ssl::context::pem, problem);
  context->set_password_callback([](std::size_t, ssl::context::password_purpose) { return std::string(); });
  if (encrypted) {
    return Error{ErrorCode::invalid_input,
                 fmt::format("{}: the private key is encrypted; allowed: a key without a passphrase, in a file that "
                             "only the server may read",
                             key_file)};
  }
  if (problem) return unusable(key_file, "the certificate's private key", problem);
  if (SSL_CTX_check_private_key(context->native_handle()) != 1) {
    return Error{ErrorCode::invalid_input, fmt::format("{} is not the key of {}", key_file, certificate_file)};
  }
  return context;
}

std::optional<double> certificate_end_s(const TlsContext& context) {
  if (!context) return std::nullopt;
  const X509* const certificate = SSL_CTX_get0_certificate(context->native_handle());
  return certificate == nullptr ? std::nullopt : unix_s(X509_get0_notAfter(certificate));
}

std::string certificate_doubt(const TlsContext& context, double now_s) {
  const X509* const certificate = context ? SSL_CTX_get0_certificate(context->native_handle()) : nullptr;
  if (certificate == nullptr) return {};
  const auto begin_s = unix_s(X509_get0_notBefore(certificate)), end_s = certificate_end_s(context);
  const auto date = [](double at_s) { return fmt::gmtime(static_cast<std::time_t>(at_s)); };
  constexpr double soon_s = 14 * 24 * 3600.0;
  if (end_s && *end_s <= now_s) return fmt::format("expired on {:%FT%TZ}: clients refuse it", date(*end_s));
  if (begin_s && *begin_s > now_s) return fmt::format("valid from {:%FT%TZ} on: clients refuse it", date(*begin_s));
  return end_s && *end_s < now_s + soon_s ? fmt::format("expires on {:%FT%TZ}", date(*end_s)) : std::string();
}

Result<TlsContext> client_tls(const std::string& ca_file) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_client);
  context->set_verify_mode(ssl::verify_peer);
  boost::system::error_code problem;
  if (ca_file.empty()) {
    context->set_default_verify_paths(problem);
    if (problem) return unusable("the system's certificates", "certificates", problem);
    return context;
  }
  if (const Status status = readable(ca_file); !status) return status.error();
  context->load_verify_file(ca_file, problem);
  if (problem) return unusable(ca_file, "certificates", problem);
  return context;
}

}  // namespace perseus::http
