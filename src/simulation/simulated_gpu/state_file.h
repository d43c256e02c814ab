// The state file of a simulated GPU, mapped by every process that computes on it, controls it or reads it.
//
// Problem: processes change one state, and any of them may be killed in the middle.
// Input:   a path; then changes as functions of the state.
// Output:  a change happens wholly or not at all: it is made on the second of two states, which comes into force by
//          one store; the lock is robust, so the next process continues from the state in force. A file appears under
//          its name when it is complete.
// Errors:  invalid_input for any other file (size, version, content) and for one from before the machine's last
//          start; not_found, cannot_write with the system's reason.
// Cost:    a lock, a copy of 2.5 KB.
// Threads: any, in any process.
#pragma once

#include <fcntl.h>

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "simulation/simulated_gpu/physics.h"

namespace perseus::simulated_gpu {

struct Content;  ///< of the file

class StateFile {
 public:
  using TimeSource = std::function<double()>;  ///< s, monotonic; empty: CLOCK_MONOTONIC

  static Result<std::unique_ptr<StateFile>> create(const std::string& path, Spec spec, double limit_w, TimeSource now);
  static Result<std::unique_ptr<StateFile>> attach(const std::string& path, TimeSource now);
  StateFile(const StateFile&) = delete;
  StateFile& operator=(const StateFile&) = delete;
  ~StateFile();

  [[nodiscard]] const Spec& spec() const;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool real_time() const { return real_time_; }

  /// Reads the time under the lock, so that it never runs backwards; then advances the device to it and calls `f`.
  template <class F>
  auto change(F f) {
    const Transaction transaction(*this);
    if constexpr (std::is_void_v<decltype(f(transaction.state(), transaction.marks()))>) {
      f(transaction.state(), transaction.marks());
      transaction.commit();
    } else {
      auto answer = f(transaction.state(), transaction.marks());
      transaction.commit();
      return answer;
    }
  }

  /// As the last change left it, without the lock: while all processes that change it are stopped.
  [[nodiscard]] const State& last() const;

  /// For waiting until the device reaches a state: read the count, check, then wait for another count.
  [[nodiscard]] std::uint32_t changes() const;
  void tell_change();
  /// Waits until the count changes or that time has passed.
  void wait_change(std::uint32_t seen, double at_most_s) const;

 private:
  class Transaction {
   public:
    explicit Transaction(StateFile& file);
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    ~Transaction();
    [[nodiscard]] State& state() const;
    [[nodiscard]] Marks& marks() const;
    void commit() const;

   private:
    StateFile& file_;
  };
  StateFile(std::string path, Content& content, TimeSource now, bool real_time);

  std::string path_;
  Content& content_;
  TimeSource now_;
  bool real_time_;
};

/// Empty: valid bytes that attach() may map and use; else the error. `now_s`: a GPU from the future is invalid.
std::string check_content(std::span<const std::byte> bytes, double now_s);

}  // namespace perseus::simulated_gpu
