#include "server/work/worker_pool.h"

#include <sys/resource.h>

#include <utility>

namespace perseus::work {
namespace {

constexpr int kRefiningNiceness = 10;  ///< of nice(1); all other threads of the server have the program's own

}  // namespace

WorkerPool::WorkerPool(int planners, store::Post post) : post_(std::move(post)) {
  PERSEUS_CHECK(planners >= 1, "a pool needs a thread");
  threads_.emplace_back([this] { run(Kind::request, Kind::reading); });
  threads_.emplace_back([this] { run(Kind::store, Kind::store); });
  for (int i = 0; i < 2 * planners; ++i) threads_.emplace_back([this] { run(Kind::planning, Kind::planning); });
  for (int i = 0; i < planners; ++i) {
    threads_.emplace_back([this] {
      // On Linux this applies to the calling thread only.
      (void)setpriority(PRIO_PROCESS, 0, kRefiningNiceness);
      run(Kind::refining, Kind::refining);
    });
  }
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::submit(Kind kind, Work work) {
  {
    const std::lock_guard lock(mutex_);
    queues_[static_cast<std::size_t>(kind)].push_back(std::move(work));
  }
  changed_.notify_all();  // notify_one() might wake a thread of the other kind
}

std::deque<Executor::Work>* WorkerPool::next_queue(Kind first, Kind last) {
  for (auto kind = static_cast<std::size_t>(first); kind <= static_cast<std::size_t>(last); ++kind) {
    if (!queues_[kind].empty()) return &queues_[kind];
  }
  return nullptr;
}

void WorkerPool::run(Kind first, Kind last) {
  while (true) {
    Work work;
    {
      std::unique_lock lock(mutex_);
      std::deque<Work>* queue = nullptr;
      changed_.wait(lock, [&] { return ending_ || (queue = next_queue(first, last)) != nullptr; });
      if (ending_) return;
      work = std::move(queue->front());
      queue->pop_front();
    }
    if (auto answer = work()) post_(std::move(answer));
  }
}

}  // namespace perseus::work
