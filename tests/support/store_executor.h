// Where a store under test posts its completions: they run when the test says so, on its own thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "base/result.h"
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

  /// Runs one piece of work, waiting until there is one; ends the test program where none comes for a minute.
  void run_one() {
    std::unique_lock lock(mutex_);
    PERSEUS_CHECK(wake_.wait_for(lock, std::chrono::minutes(1), [this] { return !posted_.empty(); }),
                  "the store completes a call within a minute");
    const auto work = std::move(posted_.front());
    posted_.pop_front();
    lock.unlock();
    work();
  }

  /// What `call(done)` comes to.
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
