// One HTTP request from a program that waits for the answer: what the thin commands need.
//
// Input: a server's URL, perhaps a bearer token, and what to ask. Output: the whole answer, whatever its status; or
// server-sent events one after another. Errors: unavailable naming the URL and why (no server there, time-out, bad
// certificate, told to stop); usage for what is no URL. Cost: a connection each. Threads: any, blocks.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "net/http_message.h"

namespace perseus {

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
};

struct HttpReply {
  int status = 0;
  std::string content_type;
  std::string body;
};

struct ServerSentEvent {
  std::string id, name, data;
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

}  // namespace perseus
