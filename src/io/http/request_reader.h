// One HTTP/1.1 request out of bytes that come in pieces.
//
// Problem: a request may come in one read or byte by byte, and what is not HTTP, too big, or may be read in two ways
//          must be answered with one clear 4xx.
// Input:   bytes as they come, limits.
// Output:  put() says how many bytes it took: all of them until the request is complete, and never one of the next
//          request.
// Errors:  RequestError with the status to answer; the connection cannot be read further after one.
// Cost:    Boost.Beast's parser, one pass.
// Threads: one.
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

  /// How many of the bytes belong to this request; not to be called after done() or error().
  std::size_t put(std::string_view bytes);
  [[nodiscard]] bool done() const;
  [[nodiscard]] const std::optional<RequestError>& error() const { return error_; }

  /// The request without its body, once: when its head is there and its body is not. Who may not ask need not send it.
  std::optional<HttpRequest> take_head();
  /// Of the body so far, and what was sent around it.
  [[nodiscard]] std::size_t held_bytes() const;

  /// True once, if the client waits for "100 Continue" before it sends the body.
  bool wants_continue();
  /// Of a complete request: may another one follow on the same connection?
  [[nodiscard]] bool keep_alive() const;
  [[nodiscard]] bool http_1_0() const;
  /// Whether the method is HEAD, whose answers have no body, errors included.
  [[nodiscard]] bool is_head() const;
  /// The complete request, without peer and tls.
  HttpRequest take();

 private:
  struct Parser;
  void fail(int status, std::string message);
  /// What the parser takes and others may read otherwise.
  void check_head();
  [[nodiscard]] HttpRequest request_without_body() const;

  std::unique_ptr<Parser> parser_;
  std::string unparsed_;  ///< the beginning of a head, until its end has come
  std::optional<RequestError> error_;
  HttpTarget target_;
  RequestLimits limits_;
  std::size_t behind_head_ = 0;  ///< bytes that came after the head, framing included
  bool head_taken_ = false;
  bool continued_ = false;
};

}  // namespace perseus::http
