// HTTP/1.1 over a Unix socket, one request at a time, as zeusd needs it.
//
// Problem: a daemon may close an idle connection at any time, be gone, be slow, or send nonsense.
// Input:   a method, a target, optionally a body.
// Output:  status and body of the response, whatever the status.
// Errors:  no_driver if no process listens there, no_permission if the socket may not be opened, busy for a time-out,
//          a connection that breaks twice, or a response that is no HTTP. A connection that turns out closed is
//          opened again once, so requests must be idempotent.
// Cost:    a write and a read while the connection lasts.
// Threads: one. This file moves the bytes; Boost.Beast parses them.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "training/device/gpu.h"

namespace perseus::device {

struct UnixHttpAnswer {
  int status = 0;
  std::string body;
};

class UnixHttp {
 public:
  UnixHttp(std::string socket_path, std::string token, std::chrono::milliseconds limit);
  UnixHttp(const UnixHttp&) = delete;
  UnixHttp& operator=(const UnixHttp&) = delete;
  ~UnixHttp();

  DeviceResult<UnixHttpAnswer> call(std::string_view method, const std::string& target, const std::string& json = {});
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::string& token() const { return token_; }
  void set_token(std::string token) { token_ = std::move(token); }

 private:
  enum class Broken { no, before_answer, for_good };
  DeviceStatus connect_socket();
  void disconnect();
  Broken exchange(const std::string& request, UnixHttpAnswer& answer, std::string& why);

  std::string path_, token_;
  std::chrono::milliseconds limit_;
  int socket_ = -1;
};

/// Parses the response in these bytes as exchange() does, for the fuzzer.
bool parse_http_answer(std::string_view bytes, UnixHttpAnswer& answer);

}  // namespace perseus::device
