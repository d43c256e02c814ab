#include "server/service/worker_pool.h"

#include <sys/resource.h>

#include <utility>

namespace perseus::service {
namespace {

/// Of nice(1). The io thread has 0.
constexpr int niceness(Executor::Kind kind) { return kind >= Executor::Kind::planning ? 10 : 5; }

}  // namespace

WorkerPool::WorkerPool(int planners, store::Post post) : post_(std::move(post)) {
  PERSEUS_CHECK(planners >= 1, "a pool needs a thread");
  threads_.emplace_back([this] { run(Kind::request, Kind::reading); });
  threads_.emplace_back([this] { run(Kind::store, Kind::store); });
  for (int i = 0; i < planners; ++i) threads_.emplace_back([this] { run(Kind::planning, Kind::refining); });
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

void WorkerPool::give_way() {
  while (true) {
    Work work;
    {
      const std::lock_guard lock(mutex_);
      std::deque<Work>& planning = queues_[static_cast<std::size_t>(Kind::planning)];
      if (ending_ || planning.empty()) return;
      work = std::move(planning.front());
      planning.pop_front();
    }
    if (auto answer = work()) post_(std::move(answer));
  }
}

void WorkerPool::run(Kind first, Kind last) {
  // On Linux this applies to the calling thread only. If it is not permitted, planning merely runs at a higher
  // priority.
  (void)setpriority(PRIO_PROCESS, 0, niceness(last));
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

}  // namespace perseus::service
