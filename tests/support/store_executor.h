// Executor for the completions of a store under test: it runs them when the test says so, on the test's thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "server/store/store.h"

namespace perseus::testing {

class StoreExecutor {
 public:
  [[nodiscard]] store::Post post() {
    return [this](std::function<void()> work) {
      const std::lock_guard lock(mutex_);
      posted_.push_back(std::move(work));
      wake_.notify_one();
    };
  }

  /// Waits for one piece of work and runs it.
  void run_one() {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return !posted_.empty(); });
    const auto work = std::move(posted_.front());
    posted_.pop_front();
    lock.unlock();
    work();
  }

  /// The result that `call(done)` passes to `done`.
  template <class T, class Call>
  Result<T> outcome(Call call) {
    std::optional<Result<T>> outcome;
    call([&](Result<T> result) { outcome = std::move(result); });
    while (!outcome) run_one();
    return *std::move(outcome);
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> posted_;
};

}  // namespace perseus::testing
