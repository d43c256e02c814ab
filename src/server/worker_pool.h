// A few threads for work that would stand in the io thread's way: planning, reading large frontiers.
//
// Problem: planning takes up to minutes; requests must be answered meanwhile, on as few as two cores. Input: Work
// (server/service.h), run in the order of submit() by at most `threads` threads of lower priority than the io thread;
// `post` brings what it returns to the io thread. Output: nothing else. Errors: none; work does not throw (std::
// bad_alloc ends the program). Work that has not begun when the pool ends is dropped; work that has is waited for.
// Cost: a lock per piece of work. Threads: submit() any.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "server/service.h"
#include "store/store.h"

namespace perseus::server {

class WorkerPool final : public Executor {
 public:
  WorkerPool(int threads, Post post);
  ~WorkerPool() override;
  void submit(Work work) override;

 private:
  void run();

  Post post_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> queue_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace perseus::server
