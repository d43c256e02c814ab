// Reports what is wrong at the moment, and since when, without flooding a log.
//
// A cause is logged when it appears and when it is gone. A cause that comes and goes is logged again only after a pause
// since its last message, which doubles each time (PauseLimits); the next message then says how often it came. A cause
// that stayed away for the longest pause starts anew.
//
// Input:   raise(cause, message) whenever the cause is seen, clear(cause) when it is gone, remind() now and then.
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
  reports,  ///< the server refuses what this rank measured
  plan,
  slowdown,  ///< iterations are slower than the plan promised
  late_clocks,
  clock_control,
  device,
  energy,
  cuda,
  records,
  device_time,  ///< when the device gets to a computation is not known
  graph         ///< steps are captured graphs
};
std::string_view name_of(Cause cause);

enum class LogLevel { info = 0, warning = 1, error = 2 };  ///< as perseus_log_level

struct Complaint {
  Cause cause = Cause::server;
  std::string message;
  double since_s = 0;      ///< of day, Unix seconds
  std::int64_t times = 0;  ///< that it has appeared since the start
};

/// Between two messages about one cause.
struct PauseLimits {
  double least_s = 10, most_s = 3600;
};

class Complaints {
 public:
  using Log = std::function<void(LogLevel, const std::string&)>;
  /// `now_s`: a monotonic clock, the host's if not given.
  explicit Complaints(Log log, PauseLimits pauses = {}, std::function<double()> now_s = {});

  /// Logged as the file's beginning says; later messages of the same cause are kept for all().
  void raise(Cause cause, const std::string& message);
  void clear(Cause cause, const std::string& now_what);
  /// Logs causes that appeared within their pause, and still hold when it is over.
  void remind();
  void say(LogLevel level, const std::string& message) const;
  /// From now on nothing is logged. Waits for a log call of another thread, at most `limit_s`.
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

  mutable std::recursive_mutex logging_;  ///< held while the log function runs; it may call the client
  Log log_;
  PauseLimits pauses_;
  std::function<double()> now_s_;
  std::atomic<bool> silent_{false};
  mutable std::mutex mutex_;
  std::vector<Known> known_;
};

}  // namespace perseus::client
