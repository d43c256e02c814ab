#include "server/work/worker_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>

#include "tests/support/eventually.h"

namespace perseus::work {
namespace {

/// The queue of an I/O thread, run by the test.
class IoQueue {
 public:
  void post(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
    changed_.notify_one();
  }
  void run_one() {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      PERSEUS_CHECK(changed_.wait_for(lock, std::chrono::minutes(1), [this] { return !queue_.empty(); }),
                    "a worker finishes within a minute");
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
};

TEST(WorkerPool, AStoreThatHangsHoldsUpNoOtherWork) {
  IoQueue io;
  std::mutex hung;
  std::unique_lock hang(hung);
  WorkerPool pool(1, [&](auto work) { io.post(std::move(work)); });
  int answered = 0;
  pool.submit(Executor::Kind::store, [&]() -> std::function<void()> {
    const std::lock_guard lock(hung);
    return [&] { ++answered; };
  });
  for (const auto kind : {Executor::Kind::request, Executor::Kind::reading, Executor::Kind::planning}) {
    pool.submit(kind, [&] { return [&] { ++answered; }; });
  }
  for (int i = 0; i < 3; ++i) io.run_one();
  EXPECT_EQ(answered, 3);
  hang.unlock();
  io.run_one();
  EXPECT_EQ(answered, 4);
}

TEST(WorkerPool, RunsEveryPieceOnceAndAnswersOnTheIoThread) {
  IoQueue io;
  WorkerPool pool(2, [&](auto work) { io.post(std::move(work)); });
  const auto io_thread = std::this_thread::get_id();
  std::set<int> answered;
  for (int i = 0; i < 100; ++i) {
    pool.submit(static_cast<Executor::Kind>(i % 4), [&, i]() -> std::function<void()> {
      EXPECT_NE(std::this_thread::get_id(), io_thread);
      return [&, i] {
        EXPECT_EQ(std::this_thread::get_id(), io_thread);
        EXPECT_TRUE(answered.insert(i).second);
      };
    });
  }
  for (int i = 0; i < 100; ++i) io.run_one();
  EXPECT_EQ(answered.size(), 100U);
}

TEST(WorkerPool, WaitsForRunningWorkAndDropsTheRest) {
  std::atomic<int> begun = 0;
  std::atomic<int> ended = 0;
  {
    IoQueue io;
    WorkerPool pool(1, [&](auto work) { io.post(std::move(work)); });
    std::mutex gate;
    gate.lock();
    for (int i = 0; i < 10; ++i) {
      pool.submit(Executor::Kind::planning, [&]() -> std::function<void()> {
        ++begun;
        const std::lock_guard wait(gate);
        ++ended;
        return {};
      });
    }
    EXPECT_TRUE(testing::eventually([&] { return begun > 0; }));
    gate.unlock();
  }
  EXPECT_EQ(begun, ended);
  EXPECT_GE(ended, 1);
}

TEST(WorkerPool, RequestWorkDoesNotWaitForPlanning) {
  IoQueue io;
  WorkerPool pool(1, [&](auto work) { io.post(std::move(work)); });
  std::mutex planning;
  planning.lock();
  for (int i = 0; i < 2; ++i) {
    pool.submit(Executor::Kind::planning, [&]() -> std::function<void()> {
      const std::lock_guard wait(planning);
      return [] {};
    });
  }
  bool answered = false;
  pool.submit(Executor::Kind::request, [&]() -> std::function<void()> { return [&] { answered = true; }; });
  io.run_one();
  EXPECT_TRUE(answered);
  planning.unlock();
}

TEST(WorkerPool, PlanningDoesNotWaitForRefining) {
  IoQueue io;
  WorkerPool pool(1, [&](auto work) { io.post(std::move(work)); });
  std::mutex refining;
  refining.lock();
  pool.submit(Executor::Kind::refining, [&]() -> std::function<void()> {
    const std::lock_guard wait(refining);
    return [] {};
  });
  bool planned = false;
  pool.submit(Executor::Kind::planning, [&]() -> std::function<void()> { return [&] { planned = true; }; });
  io.run_one();
  EXPECT_TRUE(planned);
  refining.unlock();
  io.run_one();
}

TEST(WorkerPool, OnlyRefiningHasALowerPriorityThanOtherPrograms) {
  IoQueue io;
  WorkerPool pool(1, [&](auto work) { io.post(std::move(work)); });
  const int own = getpriority(PRIO_PROCESS, 0);
  std::map<Executor::Kind, int> niceness;
  using enum Executor::Kind;
  for (const auto kind : {request, reading, planning, store, refining}) {
    pool.submit(kind, [&, kind]() -> std::function<void()> {
      const int mine = getpriority(PRIO_PROCESS, 0);
      return [&, kind, mine] { niceness[kind] = mine; };
    });
    io.run_one();
    EXPECT_EQ(niceness[kind] > own, kind == refining) << "kind " << static_cast<int>(kind);
  }
}

}  // namespace
}  // namespace perseus::work
