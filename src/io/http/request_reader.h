// Parses one HTTP/1.1 request from bytes that arrive in pieces.
//
// Problem: a request may arrive in one read or byte by byte; input that is not HTTP, too large, or ambiguous must be
//          answered with one clear 4xx.
// Input:   bytes as they arrive, limits.
// Output:  put() returns the number of bytes used: all of them until the request is complete, and none of the next
//          request.
// Errors:  RequestError with the status to answer; after one, the connection cannot be read further.
// Cost:    Boost.Beast's parser, one pass.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "io/http/http_message.h"

namespace perseus::http {

struct RequestLimits {
  std::size_t head_bytes = 16U << 10U;  ///< request line and headers
  std::size_t body_bytes = 16U << 20U;
  bool operator==(const RequestLimits&) const = default;
};

struct RequestError {
  int status;
  std::string message;
};

class RequestReader {
 public:
  explicit RequestReader(const RequestLimits& limits);
  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;
  ~RequestReader();

  /// Number of the bytes that belong to this request; do not call after done() or error().
  std::size_t put(std::string_view bytes);
  [[nodiscard]] bool done() const;
  [[nodiscard]] const std::optional<RequestError>& error() const { return error_; }

  /// The request without its body, once: when the head is complete and the body is not. An unauthorized client need
  /// not send the body.
  std::optional<HttpRequest> take_head();
  /// Bytes of the body so far, including its framing.
  [[nodiscard]] std::size_t held_bytes() const;

  /// True once, if the client waits for "100 Continue" before it sends the body.
  bool wants_continue();
  /// For a complete request: true if another one may follow on the same connection.
  [[nodiscard]] bool keep_alive() const;
  [[nodiscard]] bool http_1_0() const;
  /// True for the method HEAD, whose answers have no body, errors included.
  [[nodiscard]] bool is_head() const;
  /// The complete request, without peer and tls.
  HttpRequest take();

 private:
  struct Parser;
  void fail(int status, std::string message);
  /// Rejects heads that the parser accepts and other parsers may read differently.
  void check_head();
  [[nodiscard]] HttpRequest request_without_body() const;

  std::unique_ptr<Parser> parser_;
  std::string unparsed_;  ///< the beginning of an incomplete head
  std::optional<RequestError> error_;
  HttpTarget target_;
  RequestLimits limits_;
  std::size_t behind_head_ = 0;  ///< bytes that came after the head, framing included
  bool head_taken_ = false;
  bool continued_ = false;
};

}  // namespace perseus::http
