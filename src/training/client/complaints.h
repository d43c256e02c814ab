// Reports current problems and their start times without flooding a log.
//
// The client logs a cause when it appears and when it is gone, and never two lines about one within the least pause. A
// cause that comes and goes is logged again only after a pause since its last message, which doubles each time
// (PauseLimits); the next message then contains the number of occurrences. A cause that was absent for the longest
// pause starts anew. The last line about a cause never stays that it holds: an end after appearances that were not
// logged is logged once the cause has been absent for the least pause. News (a plan has come) keep the least pause too:
// of several within it, the last one is logged.
//
// Input:   raise(cause, message) whenever the cause is detected, clear(cause) when it is gone, note(news, message),
//          remind() periodically.
// Output:  log lines; all causes that hold now, oldest first.
// Errors:  none; exceptions of the log function are ignored.
// Cost:    a lock, so the training thread never calls it.
// Threads: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planning/model/instruction.h"

namespace perseus::client {

/// In the order of their names in complaints.cpp.
enum class Cause {
  server,
  job,
  reports,  ///< the server refuses the measurements of this rank
  plan,
  slowdown,  ///< iterations are slower than the plan promised
  late_clocks,
  clock_control,
  stuck_clock,  ///< a clock may stay locked that could not be given back
  device,
  energy,
  cuda,
  records,
  threads,        ///< several threads call what one may call at a time
  device_time,    ///< unknown when the device reaches a computation
  graph,          ///< steps are captured graphs
  budget,         ///< the plan lease of a power budget has ended: the ceiling
  shape,          ///< steps have a shape that has no plan
  foreign_clock,  ///< another process changes the GPU's clock
  limited_clock   ///< the GPU runs below its clock
};
std::string_view name_of(Cause cause);

/// What is no complaint.
enum class News { job, plan, profiling, maximum_clock, trial };

enum class LogLevel { info = 0, warning = 1, error = 2 };  ///< as perseus_log_level

struct Complaint {
  Cause cause = Cause::server;
  std::string message;
  double since_s = 0;      ///< time of day, Unix seconds
  std::int64_t times = 0;  ///< number of appearances since the start
};

/// Pauses between two messages about one cause.
struct PauseLimits {
  double least_s = 60, most_s = 3600;
};

class Complaints {
 public:
  using Log = std::function<void(LogLevel, const std::string&)>;
  /// `now_s`: a monotonic clock; default: the host's.
  explicit Complaints(Log log, PauseLimits pauses = {}, std::function<double()> now_s = {});

  /// Logs as the header describes; all() returns later messages of the same cause.
  void raise(Cause cause, const std::string& message);
  /// The same for a cause that may hold already: it appears once more.
  void raise_again(Cause cause, const std::string& message);
  void clear(Cause cause, const std::string& now_what);
  void note(News news, const std::string& message);
  /// Logs what came within a pause, once the pause has ended and if it still holds; `at_once`: without waiting for
  /// that.
  void remind(bool at_once = false);
  /// For a line that comes once.
  void say(LogLevel level, const std::string& message) const;
  /// Stops all logging. Waits at most `limit_s` for a log call of another thread.
  void silence(double limit_s);

  [[nodiscard]] bool raised(Cause cause) const;
  [[nodiscard]] std::vector<Complaint> all() const;

 private:
  struct Known {
    Complaint complaint;
    bool holds = false, logged = false;  ///< logged: since it appeared
    bool shown = false;                  ///< the last line about it says that it holds
    std::int64_t unlogged = 0;           ///< appearances
    double seen_s = 0;
    double quiet_until_s = 0, pause_s = 0;
    double line_s = kNever_s;         ///< of the last line
    std::optional<std::string> gone;  ///< line that waits, ...
    double gone_from_s = 0;           ///< ... until then
  };
  struct Line {
    News news;
    double line_s = kNever_s;
    std::optional<std::string> waits;
  };
  static constexpr double kNever_s = -1e300;
  void take(Cause cause, const std::string& message, bool again);
  [[nodiscard]] bool quiet(double line_s) const { return now_s_() < line_s + pauses_.least_s; }
  [[nodiscard]] Known* known(Cause cause);
  [[nodiscard]] std::string due(Known& known);

  mutable std::recursive_mutex logging_;  ///< held while the log function runs, which may call the client
  Log log_;
  PauseLimits pauses_;
  std::function<double()> now_s_;
  std::atomic<bool> silent_{false};
  mutable std::mutex mutex_;
  std::vector<Known> known_;
  std::vector<Line> news_;
};

/// Complains when many computations run before their clock has arrived, beyond the switch latency that plans assume.
/// Input:   every clock-controlled computation; the number of late ones so far (see iteration_meter.h).
/// Output:  the complaint Cause::late_clocks above 5 % of the last 200 or more, cleared below 2 %.
class LateClockComplaint {
 public:
  void ran(model::Instruction instruction) { computations_ += model::is_constant_time(instruction) ? 0 : 1; }
  /// `late`: number of late computations since the start.
  void judge(std::int64_t late, Complaints& complaints);

 private:
  std::int64_t computations_ = 0;
  std::int64_t judged_computations_ = 0, judged_late_ = 0;
};

}  // namespace perseus::client
