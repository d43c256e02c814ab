#include "server/service/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>

#include "tests/support/eventually.h"

namespace perseus::service {
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

TEST(WorkerPool, RefiningGivesWayToPlanningOnTheOnlyPlannerThread) {
  IoQueue io;
  WorkerPool pool(1, [&](auto work) { io.post(std::move(work)); });
  std::atomic<bool> planned = false;
  bool answered = false;
  pool.submit(Executor::Kind::refining, [&]() -> std::function<void()> {
    EXPECT_TRUE(testing::eventually([&] {  // would continue for minutes
      pool.give_way();
      return planned.load();
    }));
    return [&] { EXPECT_TRUE(answered); };
  });
  pool.submit(Executor::Kind::planning, [&]() -> std::function<void()> {
    planned = true;
    return [&] { answered = true; };
  });
  io.run_one();
  EXPECT_TRUE(answered);
  io.run_one();
}

TEST(WorkerPool, PlanningComesBeforeRefining) {
  IoQueue io;
  WorkerPool pool(1, [&](auto work) { io.post(std::move(work)); });
  std::mutex busy;
  busy.lock();
  std::string order;
  pool.submit(Executor::Kind::planning, [&]() -> std::function<void()> {
    const std::lock_guard wait(busy);
    return [] {};
  });
  pool.submit(Executor::Kind::refining, [&]() -> std::function<void()> { return [&] { order += "r"; }; });
  pool.submit(Executor::Kind::planning, [&]() -> std::function<void()> { return [&] { order += "p"; }; });
  busy.unlock();
  for (int i = 0; i < 3; ++i) io.run_one();
  EXPECT_EQ(order, "pr");
}

}  // namespace
}  // namespace perseus::service
