// What is wrong right now and since when, said once per cause: how the client fails open without flooding a log.
//
// Problem: a server that is gone for an hour is one message, not a thousand; and when it is back, that is said too.
// Input: raise(cause, message) as often as the cause is seen, clear(cause) when it is gone. Output: one line to the
// log when a cause appears or goes; all causes at any time, oldest first. Errors: none; a log
// function that throws is ignored. Cost: a lock, so never called by the training thread. Threads: any.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace perseus::client {

enum class Cause { server, job, plan, clock_control, device, energy, cuda, records, device_time, graph };
std::string_view name_of(Cause cause);

enum class LogLevel { info = 0, warning = 1, error = 2 };  ///< as perseus_log_level

struct Complaint {
  Cause cause = Cause::server;
  std::string message;
  double since_s = 0;  ///< of day, Unix seconds
};

class Complaints {
 public:
  using Log = std::function<void(LogLevel, const std::string&)>;
  explicit Complaints(Log log);

  /// Said once until the cause is cleared; later messages of the same cause are kept for all().
  void raise(Cause cause, const std::string& message);
  void clear(Cause cause, const std::string& now_what);
  void say(LogLevel level, const std::string& message) const;

  [[nodiscard]] bool raised(Cause cause) const;
  [[nodiscard]] std::vector<Complaint> all() const;

 private:
  Log log_;
  mutable std::mutex mutex_;
  std::vector<Complaint> complaints_;
};

}  // namespace perseus::client
