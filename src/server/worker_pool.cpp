#include "server/worker_pool.h"

#include <sys/resource.h>

#include <utility>

namespace perseus::server {
namespace {

constexpr int lower_priority = 10;  // of nice(1)

}  // namespace

WorkerPool::WorkerPool(int threads, Post post) : post_(std::move(post)) {
  PERSEUS_CHECK(threads >= 1, "a pool needs a thread");
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    queue_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::submit(Work work) {
  {
    const std::lock_guard lock(mutex_);
    if (ending_) return;
    queue_.push_back(std::move(work));
  }
  changed_.notify_one();
}

void WorkerPool::run() {
  // On Linux this is the calling thread's alone. If it is not allowed, planning is merely less polite.
  (void)setpriority(PRIO_PROCESS, 0, lower_priority);
  while (true) {
    Work work;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ending_ || !queue_.empty(); });
      if (ending_) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    if (auto answer = work()) post_(std::move(answer));
  }
}

}  // namespace perseus::server
