// A few threads for work that would block the io thread: planning, reading profiles and large frontiers.
//
// Problem: planning takes up to minutes; requests must be answered meanwhile, on as few as two cores.
// Input:   work (server/work/executor.h), each kind in the order of submit(). Reads of the store have one thread,
//          requests and reading another one, planning 2 `planners` (PlanningQueue starts so many at a time), refining
//          `planners`. Only refining has a lower priority than other programs: ranks wait for all the rest.
// Output:  `post` moves the function that the work returns to the io thread.
// Errors:  none; work does not throw (std::bad_alloc ends the program). When the pool ends, queued work is dropped
//          and running work is awaited.
// Cost:    a lock per piece of work.
// Threads: submit() any.
#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "server/store/store.h"
#include "server/work/executor.h"

namespace perseus::work {

class WorkerPool final : public Executor {
 public:
  WorkerPool(int planners, store::Post post);
  ~WorkerPool() override;
  void submit(Kind kind, Work work) override;

 private:
  /// Runs work of these kinds, the first kind first, until the end.
  void run(Kind first, Kind last);
  std::deque<Work>* next_queue(Kind first, Kind last);

  store::Post post_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<std::deque<Work>, 5> queues_;  ///< by Kind
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace perseus::work
