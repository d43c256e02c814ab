// Blocking HTTP requests: single ones, or several on a kept connection.
//
// Input:   a server's URL, or several of servers of which one serves and the others stand by; optionally a bearer
//          token; the request.
// Output:  the whole answer, whatever its status.
// Errors:  unavailable with the URL and the reason (no server, time-out, invalid certificate, stop requested); usage
//          for an invalid URL.
// Cost:    http_call(): a connection each. HttpConnection: one for all its calls, about ten times
//          cheaper with TLS.
// Threads: blocks. The functions: any. An HttpConnection: one at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "io/http/http_message.h"

namespace perseus::http {

struct HttpPeer {
  std::string url;      ///< "http://127.0.0.1:7787"; several with commas between
  std::string token;    ///< none: no Authorization header
  std::string ca_file;  ///< certificates to trust instead of the system's
  std::chrono::milliseconds timeout{60000};
  std::uint64_t most_body_bytes = std::uint64_t{1} << 30U;  ///< of an answer; more is an error
};

struct HttpCall {
  std::string method = "GET";
  std::string target;  ///< "/v1/jobs", encoded
  std::string body;
  std::string content_type = "application/json";
  std::string authorization = {};    ///< the header's value, instead of the peer's token
  std::string idempotency_key = {};  ///< the header's value; empty: none
  std::string if_match = {};         ///< the same
};

struct HttpReply {
  int status = 0;
  std::string content_type;
  std::string body;
  std::string etag = {};         ///< empty: none
  std::string retry_after = {};  ///< the header's value; empty: none
};

/// Connects at first use, and again after the server has closed the connection (idle, restarted) or a call has
/// failed. If a kept connection turns out to be closed before the first byte of an answer, the request is sent again:
/// the server may see it twice, so calls must be idempotent.
class HttpConnection {
 public:
  explicit HttpConnection(HttpPeer peer);
  HttpConnection(HttpConnection&&) noexcept;
  HttpConnection& operator=(HttpConnection&&) noexcept;
  ~HttpConnection();
  /// Like http_call(). The peer's time-out covers the whole call, connecting included.
  Result<HttpReply> call(const HttpCall& call, const std::stop_token& stop = {});
  /// Applies to later calls.
  void set_timeout(std::chrono::milliseconds timeout);
  /// Number of connections made.
  [[nodiscard]] int connections() const;
  void close();

  class Transport;

 private:
  std::unique_ptr<Transport> transport_;
};

/// Returns at once when `stop` is requested, except during the lookup of the server's name. Of several servers, one
/// that has not begun to answer a GET after its share of the time is passed over.
Result<HttpReply> http_call(const HttpPeer& peer, const HttpCall& call, const std::stop_token& stop = {});

}  // namespace perseus::http
