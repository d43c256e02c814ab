// A thread of the client inside a training process.
//
// The thread blocks all signals, reports its processor time, and never delays the end of the process: stop() abandons
// a thread that does not end in time (for example one that hangs in a driver or a name look-up).
//
// Input:   a body that returns soon after its stop token is set, and that owns (or shares) everything it uses, since
//          it may outlive its BackgroundThread. A body that throws is called again after a pause of 0.1 s, doubling
//          to 5 s, so it keeps its progress outside of itself.
// Output:  processor time.
// Errors:  where no thread can be created, running() is false; start() may be called again.
// Cost:    a thread.
// Threads: the owner's, one at a time; cpu_s() any.
#pragma once

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
  /// Requests the end and waits at most that long; then abandons the thread and returns false.
  bool stop(double limit_s);
  /// Waits at most that long for the thread to end by itself.
  bool wait(double limit_s);
  [[nodiscard]] bool running() const { return state() != nullptr; }
  [[nodiscard]] double cpu_s() const;

 private:
  struct State;
  [[nodiscard]] std::shared_ptr<State> state() const;
  mutable std::mutex mutex_;      ///< guards state_ and cpu_at_end_s_
  std::shared_ptr<State> state_;  ///< null: not running
  std::stop_source stop_;
  std::thread thread_;
  double cpu_at_end_s_ = 0;
};

/// Returns false if the stop token ended the sleep.
bool sleep_for(const std::stop_token& stop, double seconds);

}  // namespace perseus::client
