// Changes of one thing in the store, one after another: each reads, decides, and writes, and then calls its argument.
//
// Threads: io thread.
#pragma once

#include <deque>
#include <functional>

#include "server/work/executor.h"

namespace perseus::work {

class StoreTurns {
 public:
  using Change = std::function<void(Done<Ok>)>;

  void add(Change change, Done<Ok> done);

 private:
  struct Turn {
    Change change;
    Done<Ok> done;
  };
  void begin();
  void end(const Result<Ok>& result);

  std::deque<Turn> turns_;  ///< the first is in progress
};

}  // namespace perseus::work
