// A thread of the client inside a training process.
//
// Takes none of the process's signals, reports its processor time, and never holds up the end of the process: stop()
// leaves a thread behind that does not end in time (one that hangs in a driver or a name look-up).
//
// Input:   a body that returns soon after its stop token is set, and owns (or shares) whatever it touches: it may
//          outlive its BackgroundThread. A body that throws is called again after a pause of 0.1 s, doubling to 5 s,
//          so it keeps its progress outside of itself.
// Output:  processor time.
// Errors:  where no thread can be made, running() is false; start() may be called again.
// Cost:    a thread.
// Threads: the owner's, one at a time; cpu_s() any.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

namespace perseus::client {

class BackgroundThread {
 public:
  using Body = std::function<void(std::stop_token)>;
  BackgroundThread() = default;
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;
  ~BackgroundThread() { stop(1); }

  void start(const char* name, Body body);
  /// Asks it to end and waits so long for it at most; then it is left behind. False: it was.
  bool stop(double limit_s);
  /// Waits so long at most until it has ended by itself.
  bool wait(double limit_s);
  [[nodiscard]] bool running() const { return state() != nullptr; }
  [[nodiscard]] double cpu_s() const;

 private:
  struct State;
  [[nodiscard]] std::shared_ptr<State> state() const;
  mutable std::mutex mutex_;      ///< of state_ and cpu_at_end_s_
  std::shared_ptr<State> state_;  ///< null: not running
  std::stop_source stop_;
  std::thread thread_;
  double cpu_at_end_s_ = 0;
};

/// False: woken by the stop token.
bool sleep_for(const std::stop_token& stop, double seconds);

}  // namespace perseus::client
