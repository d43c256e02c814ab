// Runs work off the io thread: planning, parsing, reads of the store.
//
// Input:   work, which must not refer to objects of the io thread.
// Output:  the function that the work returns runs on the io thread afterwards.
// Errors:  none; work does not throw.
// Threads: submit() any.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "base/result.h"

namespace perseus::work {

/// Answers a call with the result, or the error: once, on the io thread, inside the call or later.
template <class T>
using Done = std::function<void(Result<T>)>;

class Executor {
 public:
  using Work = std::function<std::function<void()>()>;
  /// Work of requests, about a millisecond each, precedes reading known frontiers, of which a restarted server has
  /// many, and neither waits for planning. Refining, which may take minutes and for which no rank waits, runs beside
  /// the rest at a lower priority. Reads of the store have their own thread, so that a database that hangs delays
  /// nothing else.
  enum class Kind : unsigned char { request, reading, planning, refining, store };
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;
  virtual void submit(Kind kind, Work work) = 0;
};

/// Runs `work` on the executor as work of a request, and then `then` with the result on the io thread.
template <class Work, class Then>
void run_off_thread(Executor& executor, Work work, Then then) {
  executor.submit(Executor::Kind::request, [work = std::move(work), then = std::move(then)] {
    const auto outcome = std::make_shared<decltype(work())>(work());
    return std::function<void()>([then, outcome] { then(std::move(*outcome)); });
  });
}

/// The gate through which everything comes back to the io thread: results of work, answers of the store. What follows
/// them runs while the gate exists, and not afterwards: so the parts of a service, which live as long, capture `this`.
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
