// Runs work off the io thread: planning, parsing, reads of the store.
//
// Input:   work, which must not refer to objects of the io thread.
// Output:  the function that the work returns runs on the io thread afterwards.
// Errors:  none; work does not throw.
// Threads: submit() any.
#pragma once

#include <functional>

namespace perseus::service {

class Executor {
 public:
  using Work = std::function<std::function<void()>()>;
  /// Work of requests, about a millisecond each, precedes reading known frontiers, of which a restarted server has
  /// many, and neither waits for planning. Refining, which may take minutes, runs when no other planning waits. Reads
  /// of the store have their own threads, so that a database that hangs delays nothing else.
  enum class Kind : unsigned char { request, reading, planning, refining, store };
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;
  virtual void submit(Kind kind, Work work) = 0;
  /// For refining work, to be called every few milliseconds: runs waiting planning work on the calling thread.
  virtual void give_way() {}
};

}  // namespace perseus::service
