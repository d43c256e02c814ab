// The gate through which everything comes back to the io thread: results of work, answers of the store.
//
// Problem: what the parts of a service have begun may end after the service does; each part would have to ask whether
//          it still exists.
// Input:   work, and callbacks of the store.
// Output:  what follows them, while the gate exists; nothing afterwards. So the parts, which live as long as the gate,
//          capture `this`.
// Errors:  none; what ends too late is dropped.
// Threads: submit() any, everything else the io thread, the end included.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "server/work/executor.h"

namespace perseus::work {

class Gate final : public Executor {
 public:
  explicit Gate(Executor& executor) : executor_(executor) {}

  void submit(Kind kind, Work work) override {
    executor_.submit(kind, [open = std::weak_ptr(open_), work = std::move(work)]() mutable -> std::function<void()> {
      return [open, then = std::exchange(work, nullptr)()] {
        if (then && !open.expired()) then();
      };
    });
  }

  template <class T>
  Done<T> pass(Done<T> done) {
    return [open = std::weak_ptr(open_), done = std::move(done)](Result<T> result) {
      if (!open.expired()) done(std::move(result));
    };
  }

 private:
  Executor& executor_;
  std::shared_ptr<bool> open_ = std::make_shared<bool>(true);
};

}  // namespace perseus::work
