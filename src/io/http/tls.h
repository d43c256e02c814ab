// TLS settings of server and client from PEM files.
//
// Input:   paths.
// Output:  a context that speaks TLS 1.2 and 1.3.
// Errors:  not_found or invalid_input naming the file and what OpenSSL says about it.
// Cost:    reading the files.
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
/// When the certificate of a server's context is valid no longer, Unix seconds; nothing: it has none.
std::optional<double> certificate_end_s(const TlsContext& context);
/// Trusts the system's certificates, or only those in `ca_file` where one is given.
Result<TlsContext> client_tls(const std::string& ca_file = {});

}  // namespace perseus::http
