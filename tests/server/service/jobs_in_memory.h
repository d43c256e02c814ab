// JobCache over a store in memory, with a hand-turned clock and an executor that works when settle() is called.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "server/live/job_access.h"
#include "server/live/job_cache.h"
#include "server/work/executor.h"
#include "tests/support/test_store.h"

namespace perseus::testing {

/// Hooks that a test sets; others do nothing.
struct TestHooks final : live::JobHooks {
  std::function<std::optional<jobs::EventBody>(live::LiveJob&, double)> follow_up;
  std::function<void(live::LiveJob&, const std::vector<live::SequencedEvent>&)> on_committed;
  std::function<void(live::LiveJob&)> on_shown;
  int times_shown = 0;

  std::optional<jobs::EventBody> next_follow_up(live::LiveJob& live, double now_s) override {
    return follow_up ? follow_up(live, now_s) : std::nullopt;
  }
  [[nodiscard]] std::optional<double> due_s(const live::LiveJob& /*live*/, double /*now_s*/) const override {
    return std::nullopt;
  }
  void wake(const std::string& /*id*/) override {}
  [[nodiscard]] std::string summary(const live::LiveJob& /*live*/) const override { return "{}"; }
  void writing(const live::LiveJob& /*live*/, std::int64_t /*bytes*/) override {}
  void written(const std::vector<live::SequencedEvent>& /*events*/) override {}
  void committed(live::LiveJob& live, const std::vector<live::SequencedEvent>& events) override {
    if (on_committed) on_committed(live, events);
  }
  void shown(live::LiveJob& live) override {
    ++times_shown;
    if (on_shown) on_shown(live);
  }
  void removed(live::LiveJob& /*live*/) override {}
  void row_changed() override {}
  void row_erased(const store::JobIndexRow& /*gone*/) override {}
};

class JobsInMemory : public work::Executor {
 public:
  explicit JobsInMemory(std::shared_ptr<TestDatabase> database = std::make_shared<TestDatabase>())
      : database_(std::move(database)),
        store_([this](std::function<void()> work) { queue_.push_back(std::move(work)); }, database_),
        access_(store_, clock_, due_, gate_, 10, [this](const std::string& line) { warnings.push_back(line); }),
        jobs_(access_, clock_, due_, hooks) {}

  void submit(Kind /*kind*/, Work work) override {
    queue_.push_back([this, work = std::move(work)] {
      auto result = work();
      holds_results ? held_results_.push_back(std::move(result)) : result();
    });
  }
  /// What the executor has done comes back from now on, and what it has held back.
  void release_results() {
    holds_results = false;
    for (auto& result : std::exchange(held_results_, {})) queue_.push_back(std::move(result));
    settle();
  }
  void settle() {
    while (!queue_.empty()) settle_one();
  }
  void settle_one() {
    const auto work = std::move(queue_.front());
    queue_.pop_front();
    work();
  }

  /// A job of one pipeline with two stages, with its first ranks.
  void create(const std::string& id, int ranks = 2, jobs::JobRegistered job = {}) {
    job.degrees = {1, 2, 1};
    std::vector<jobs::EventBody> events{job};
    for (int rank = 0; rank < ranks; ++rank) events.emplace_back(rank_of_stage(rank));
    jobs_.create(id, {[events](const jobs::Job& /*job*/, double /*now_s*/) {
                        return Result<live::Decision>(live::Decision{events, {}});
                      },
                      {}});
    settle();
  }
  static jobs::RankRegistered rank_of_stage(int rank) {
    jobs::RankRegistered registered;
    registered.rank = registered.pp_rank = rank;
    registered.accelerator = "GPU-" + std::to_string(rank);
    return registered;
  }
  /// Makes these events and blobs durable.
  void append(const std::string& id, std::vector<jobs::EventBody> events, std::vector<store::Blob> blobs = {}) {
    jobs_.execute(id,
                  {[events = std::move(events), blobs = std::move(blobs)](const jobs::Job& /*job*/, double /*now_s*/) {
                     return Result<live::Decision>(live::Decision{events, blobs});
                   },
                   {}});
    settle();
  }
  live::LiveJob& live(const std::string& id) { return *jobs_.in_memory(id); }

  [[nodiscard]] live::JobCache& jobs() { return jobs_; }
  [[nodiscard]] work::StoreAccess& access_to_store() { return access_; }
  [[nodiscard]] TestDatabase& database() { return *database_; }
  [[nodiscard]] TestStore& store() { return store_; }
  [[nodiscard]] HandTurnedClock& clock() { return clock_; }
  /// What time makes due for the store and the jobs.
  [[nodiscard]] work::Due& due() { return due_; }

  TestHooks hooks;
  bool holds_results = false;
  std::vector<std::string> warnings;  ///< of the access to the store

 private:
  std::shared_ptr<TestDatabase> database_;
  HandTurnedClock clock_{1'800'000'000};
  std::deque<std::function<void()>> queue_, held_results_;
  TestStore store_;
  work::Due due_;
  work::Gate gate_{*this};
  work::StoreAccess access_;
  live::JobCache jobs_;
};

/// The answer that a call has given so far.
template <class T>
class Answer {
 public:
  work::Done<T> take() {
    return [into = into_](Result<T> result) {
      PERSEUS_CHECK(!*into, "a second answer");
      *into = std::move(result);
    };
  }
  [[nodiscard]] bool given() const { return into_->has_value(); }
  const Result<T>& operator*() const { return **into_; }
  const Result<T>* operator->() const { return &**into_; }

 private:
  std::shared_ptr<std::optional<Result<T>>> into_ = std::make_shared<std::optional<Result<T>>>();
};

}  // namespace perseus::testing
