// Decides when the supervisor intervenes: the worker hangs, or the training process is suspended.
//
// A worker that does not respond is found within 200 ms: the supervisor wakes it if it has not looked for requests
// for one tick, and it must then look. A worker that is runnable but gets no core is not hung: it has two seconds. A
// device call may last 160 ms; the first calls, in which a driver may still start, have two seconds, and so has
// zeusd, which may run a command of the administrator's for each. A training process that is stopped (SIGSTOP, a
// debugger) for five seconds is suspended.
//
// Input:   look(), every kTick while busy, with the time (so that tests control it); process states as in
//          /proc/PID/stat.
// Output:  the action to take.
// Cost:    a few comparisons; it reads a process state only if the worker is overdue, and once a second for the
//          owner.
// Source:  docs/decisions/0027-node-daemon-and-leases-by-uuid.md.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

namespace perseus::clock_control {

class Watchdog {
 public:
  static constexpr std::int64_t kTick = 40'000'000;               // ns
  static constexpr std::int64_t kAnswerLimit = 60'000'000;        // from waking the worker until it must have looked
  static constexpr std::int64_t kCallLimit = 160'000'000;         // of a device call
  static constexpr std::int64_t kPatience = 2'000'000'000;        // for a worker that is starved, and for first calls
  static constexpr std::int64_t kSuspendedAfter = 5'000'000'000;  // ns in state T

  struct Seen {
    std::int64_t now_ns = 0;
    bool busy = false;                                         ///< a clock is locked, or a request is not completed yet
    std::int64_t looked_ns = 0, call_began_ns = 0, calls = 0;  ///< see WorkerPulse
  };
  enum class Advice {
    sleep,            ///< until a request comes
    look_again,       ///< after kTick
    wake_worker,      ///< then look again
    worker_hangs,     ///< end it and give its clock back
    owner_suspended,  ///< give the clock back until it continues
  };

  using State = std::function<char()>;  ///< a process's state; 0: unknown
  Watchdog(State worker, State owner) : worker_(std::move(worker)), owner_(std::move(owner)) {}
  Advice look(const Seen& seen);

 private:
  [[nodiscard]] bool owner_is_suspended(std::int64_t now_ns);

  State worker_, owner_;
  std::int64_t last_ns_ = 0;
  std::int64_t woken_ns_ = 0;  ///< when the worker was woken; 0: it has responded
  std::int64_t owner_asked_ns_ = 0, owner_stopped_ns_ = 0;
};

}  // namespace perseus::clock_control
