// Changes of one thing in the store, one after another.
//
// Problem: a change reads, decides, and writes; two at a time would lose one.
// Input:   changes, which call their argument when they have ended.
// Output:  `done` with the outcome of the change.
// Errors:  those of the change.
// Threads: io thread.
#pragma once

#include <deque>
#include <functional>
#include <utility>

#include "server/work/done.h"

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
