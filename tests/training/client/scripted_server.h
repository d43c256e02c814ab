// An HTTP server on a free port that gives the answers of a test and records the requests.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "io/http/http_server.h"
#include "training/client/options.h"

namespace perseus::client {

/// Polls until the condition holds; false after a minute.
inline bool eventually(const std::function<bool()>& so) {
  for (int i = 0; i < 12000; ++i) {
    if (so()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

class ScriptedServer {
 public:
  /// Status and body; status 0: no answer.
  using Script = std::function<std::pair<int, std::string>(const http::HttpRequest&)>;

  explicit ScriptedServer(Script script)
      : script_(std::move(script)),
        server_(io_, {}, [this](const http::HttpRequest& request, const http::Responder& responder) {
          const std::lock_guard lock(mutex_);
          requests_.push_back(request);
          const auto [status, body] = script_(request);
          if (status == 0) {
            held_.push_back(responder);
          } else {
            responder.send(http::json_response(status, body));
          }
        }) {
    port_ = server_.listen({"127.0.0.1", 0}).value();
    thread_ = std::thread([this] { io_.run(); });
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;
  ~ScriptedServer() {
    io_.stop();
    thread_.join();
  }

  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  void script(Script script) {
    const std::lock_guard lock(mutex_);
    script_ = std::move(script);
  }
  /// Answers the requests that got no answer so far.
  void answer_held(int status, const std::string& body) {
    boost::asio::post(io_, [this, status, body] {
      const std::lock_guard lock(mutex_);
      for (const http::Responder& held : std::exchange(held_, {})) held.send(http::json_response(status, body));
    });
  }
  /// Bodies of the recorded requests with this method whose path ends with `end`.
  std::vector<std::string> asked(const std::string& method, const std::string& end) {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> bodies;
    for (const http::HttpRequest& request : requests_) {
      if (request.method == method && request.path.ends_with(end)) bodies.push_back(request.body);
    }
    return bodies;
  }
  /// These requests themselves.
  std::vector<http::HttpRequest> requests(const std::string& method, const std::string& end) {
    const std::lock_guard lock(mutex_);
    std::vector<http::HttpRequest> found;
    for (const http::HttpRequest& request : requests_) {
      if (request.method == method && request.path.ends_with(end)) found.push_back(request);
    }
    return found;
  }

 private:
  std::mutex mutex_;
  Script script_;
  std::vector<http::HttpRequest> requests_;
  std::vector<http::Responder> held_;
  boost::asio::io_context io_{1};
  http::HttpServer server_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

/// The answers of a working server: a job "j1", and `plan` for every rank with an older version.
inline std::pair<int, std::string> well(const http::HttpRequest& request, const std::string& plan, int version = 1) {
  if (request.path == "/v1/jobs") return {200, R"({"job":"j1","state":"deployed"})"};
  if (request.path.ends_with("/ranks")) return {200, R"({"registered":1,"expected":1})"};
  if (request.path.ends_with("/iterations")) return {200, R"({"rejected":[]})"};
  if (request.path.ends_with("/finish")) return {200, "{}"};
  if (!plan.empty() && request.parameter("have") != std::to_string(version)) return {200, plan};
  return {200, R"({"rank":0,"unchanged":true})"};
}

inline std::string plan_of(int version, const std::string& clocks, const std::string& more = "") {
  return R"({"rank":0,"version":)" + std::to_string(version) +
         R"(,"kind":"plan","from_iteration":0,"iteration_time_s":0.5,"reason":"a test","clocks":)" + clocks + more +
         "}";
}

inline SessionTiming hasty() {
  SessionTiming timing;
  timing.poll_s = 0.05;
  timing.answer_s = 30;
  timing.grace_s = 0;
  timing.least_wait_s = 0.01;
  timing.most_wait_s = 0.05;
  return timing;
}

/// Logs every message, without suppressing repetitions.
inline PauseLimits no_pause() { return {0, 0}; }

/// Messages that a client logs.
class Said {
 public:
  Complaints::Log log() {
    return [this](LogLevel, const std::string& message) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(message);
    };
  }
  int count(const std::string& part) const {
    const std::lock_guard lock(mutex_);
    int count = 0;
    for (const std::string& line : lines_) count += line.find(part) != std::string::npos ? 1 : 0;
    return count;
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    lines_.clear();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace perseus::client
