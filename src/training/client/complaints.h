// Reports current problems and their start times without flooding a log.
//
// The client logs a cause when it appears and when it is gone. A cause that comes and goes is logged again only after
// a pause since its last message, which doubles each time (PauseLimits); the next message then contains the number of
// occurrences. A cause that was absent for the longest pause starts anew.
//
// Input:   raise(cause, message) whenever the cause is detected, clear(cause) when it is gone, remind() periodically.
// Output:  log lines; all causes that hold now, oldest first.
// Errors:  none; exceptions of the log function are ignored.
// Cost:    a lock, so the training thread never calls it.
// Threads: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace perseus::client {

enum class Cause {
  server,
  job,
  reports,  ///< the server refuses the measurements of this rank
  plan,
  slowdown,  ///< iterations are slower than the plan promised
  late_clocks,
  clock_control,
  device,
  energy,
  cuda,
  records,
  device_time,  ///< unknown when the device reaches a computation
  graph,        ///< steps are captured graphs
  budget,       ///< the plan lease of a power budget has ended: the ceiling
  backstop      ///< the GPU's own power limit is not lowered under a power budget
};
std::string_view name_of(Cause cause);

enum class LogLevel { info = 0, warning = 1, error = 2 };  ///< as perseus_log_level

struct Complaint {
  Cause cause = Cause::server;
  std::string message;
  double since_s = 0;      ///< time of day, Unix seconds
  std::int64_t times = 0;  ///< number of appearances since the start
};

/// Pauses between two messages about one cause.
struct PauseLimits {
  double least_s = 10, most_s = 3600;
};

class Complaints {
 public:
  using Log = std::function<void(LogLevel, const std::string&)>;
  /// `now_s`: a monotonic clock; default: the host's.
  explicit Complaints(Log log, PauseLimits pauses = {}, std::function<double()> now_s = {});

  /// Logs as the header describes; all() returns later messages of the same cause.
  void raise(Cause cause, const std::string& message);
  void clear(Cause cause, const std::string& now_what);
  /// Logs causes that appeared within their pause and still hold when it ends.
  void remind();
  void say(LogLevel level, const std::string& message) const;
  /// Stops all logging. Waits at most `limit_s` for a log call of another thread.
  void silence(double limit_s);

  [[nodiscard]] bool raised(Cause cause) const;
  [[nodiscard]] std::vector<Complaint> all() const;

 private:
  struct Known {
    Complaint complaint;
    bool holds = false, logged = false;  ///< logged: since it appeared
    std::int64_t unlogged = 0;           ///< appearances
    double seen_s = 0;
    double quiet_until_s = 0, pause_s = 0;
  };
  [[nodiscard]] Known* known(Cause cause);
  [[nodiscard]] std::string due(Known& known);

  mutable std::recursive_mutex logging_;  ///< held while the log function runs, which may call the client
  Log log_;
  PauseLimits pauses_;
  std::function<double()> now_s_;
  std::atomic<bool> silent_{false};
  mutable std::mutex mutex_;
  std::vector<Known> known_;
};

}  // namespace perseus::client
