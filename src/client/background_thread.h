// A thread of the client's own inside somebody else's process.
//
// Problem: such a thread must not take the process's signals, must say what it costs, and must never hold up the end
// of the process: one that hangs in a name look-up is left behind. Input: a body that ends soon after its stop token
// says so, throws nothing that matters, and owns what it touches (it may outlive its BackgroundThread). Output: its
// processor time. Errors: a thread that cannot be made: running() is false. Threads: the owner's, one at a time;
// cpu_s() any. Cost: a thread.
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
  [[nodiscard]] bool running() const { return state_ != nullptr; }
  [[nodiscard]] double cpu_s() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::stop_source stop_;
  std::thread thread_;
  double cpu_at_end_s_ = 0;
};

/// False: woken by the stop token.
bool sleep_for(const std::stop_token& stop, double seconds);

}  // namespace perseus::client
