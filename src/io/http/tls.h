// TLS settings of server and client from PEM files.
//
// Input:   paths.
// Output:  a context for TLS 1.2 and 1.3.
// Errors:  not_found or invalid_input with the file and OpenSSL's message.
// Cost:    reads the files.
// Threads: make one, share it read-only.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"

namespace boost::asio::ssl {
class context;
}

namespace perseus::http {

using TlsContext = std::shared_ptr<boost::asio::ssl::context>;

/// A certificate chain and its private key, both PEM.
Result<TlsContext> server_tls(const std::string& certificate_file, const std::string& key_file);
/// Expiry of the certificate of a server's context, Unix seconds; nothing: no certificate.
std::optional<double> certificate_end_s(const TlsContext& context);
/// Why clients refuse that certificate by its dates, or will within two weeks; empty: they do not.
std::string certificate_doubt(const TlsContext& context, double now_s);
/// Trusts the system's certificates, or only those in `ca_file` if given.
Result<TlsContext> client_tls(const std::string& ca_file = {});

}  // namespace perseus::http
