// HTTP requests from a program that waits for the answer: one at a time, or one after another on a kept connection.
//
// Input:   a server's URL, perhaps a bearer token, and what to ask.
// Output:  the whole answer, whatever its status; or server-sent events one after another.
// Errors:  unavailable naming the URL and why (no server there, time-out, bad certificate, told to stop); usage for
//          what is no URL.
// Cost:    http_call() and follow_events(): a connection each. HttpConnection: one for all its calls, with TLS some
//          ten times cheaper.
// Threads: blocks. The functions: any. An HttpConnection: one at a time.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "io/http/http_message.h"

namespace perseus::http {

struct HttpPeer {
  std::string url;      ///< "http://127.0.0.1:7787"
  std::string token;    ///< none: no Authorization header
  std::string ca_file;  ///< certificates to trust instead of the system's
  std::chrono::milliseconds timeout{60000};
};

struct HttpCall {
  std::string method = "GET";
  std::string target;  ///< "/v1/jobs", encoded
  std::string body;
  std::string content_type = "application/json";
  std::string authorization = {};    ///< the header's value, instead of the peer's token
  std::string idempotency_key = {};  ///< the header's value; empty: none
};

struct HttpReply {
  int status = 0;
  std::string content_type;
  std::string body;
};

struct ServerSentEvent {
  std::string id, name, data;
};

/// Connects when it is first used, and again after the server has closed the connection (idle, restarted) or a call has
/// failed. A request that finds a kept connection closed before the first byte of an answer is sent once more: the
/// server may have seen it twice, so calls must bear that.
class HttpConnection {
 public:
  explicit HttpConnection(HttpPeer peer);
  HttpConnection(HttpConnection&&) noexcept;
  HttpConnection& operator=(HttpConnection&&) noexcept;
  ~HttpConnection();
  /// As http_call(). The peer's time-out holds from the call on, connecting included.
  Result<HttpReply> call(const HttpCall& call, const std::stop_token& stop = {});
  /// Of the calls from now on.
  void set_timeout(std::chrono::milliseconds timeout);
  /// Times that a connection was made.
  [[nodiscard]] int connections() const;
  void close();

  class Transport;

 private:
  std::unique_ptr<Transport> transport_;
};

/// Gives up at once when `stop` says so, but for the look-up of the server's name.
Result<HttpReply> http_call(const HttpPeer& peer, const HttpCall& call, const std::stop_token& stop = {});

/// Follows an event stream after the event `after` (if any) until `on_event` says false or the stream ends. An answer
/// that is no stream is returned; the status of one that was is 200 with an empty body.
Result<HttpReply> follow_events(const HttpPeer& peer, const std::string& target, const std::string& after,
                                const std::function<bool(const ServerSentEvent&)>& on_event);

/// Cuts a text/event-stream into events; bytes may come in any pieces.
class EventReader {
 public:
  void put(std::string_view bytes);
  std::optional<ServerSentEvent> next();

 private:
  std::string text_;
  ServerSentEvent event_;
  bool has_data_ = false;
};

}  // namespace perseus::http
