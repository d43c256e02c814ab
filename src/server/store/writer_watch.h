// Keeps asking for the right to write, and tells who has it.
//
// Input:   a store that several servers share; this server's address, for the others.
// Output:  `told` when another server than before may write, or this one: where Post runs it.
// Errors:  none: while the database does not answer, nobody else gets the right, and nothing is told.
// Cost:    a query each second with the right, 4 without.
// Threads: one of its own.
// Source:  docs/decisions/0066.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "server/store/store.h"

namespace perseus::store {

class WriterWatch {
 public:
  using Told = std::function<void(const Writer&)>;
  /// `first`: the store's last answer, which is not told. The store must outlive it.
  WriterWatch(Store& store, Writer first, std::string address, Post post, Told told);

  /// False: the database has not confirmed the right for kRight_s, and another server may have it.
  [[nodiscard]] bool is_sure() const { return std::chrono::steady_clock::now() < sure_until_.load(); }
  /// Gives the right back, and tells nothing any more.
  void resign() { thread_.request_stop(); }
  /// Waits until it has been given back. False: the database does not answer, and the thread cannot be joined.
  [[nodiscard]] bool has_resigned_within(std::chrono::milliseconds limit);

 private:
  void work(const std::stop_token& stop);

  Store& store_;
  Writer last_;
  const std::string address_;
  const Post post_;
  const Told told_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  bool resigned_ = false;
  std::atomic<std::chrono::steady_clock::time_point> sure_until_;
  std::jthread thread_;  // last: it uses all other members
};

}  // namespace perseus::store
