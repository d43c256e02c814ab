// Pipelines of two and four ranks under a plan, with what disturbs real jobs: stalls of the host, and clocks that
// another process locks. Each rank has its guard, its follower and its helper's worker on a scripted GPU; one
// hand-turned clock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/training/clock_control/fake_gpu.h"
#include "tests/training/clock_control/lease_folder.h"
#include "training/client/plan_follower.h"
#include "training/client/plan_guard.h"
#include "training/clock_control/clock_worker.h"

namespace perseus::client::pipeline {
namespace {

using clock_control::ClockWorker;
using clock_control::Mailbox;

constexpr int kHighest = 1400, kMicrobatches = 8;
constexpr double kForward_s = 0.01, kBackward_s = 0.02;  // of rank 0 at the highest clock
constexpr double kOthers = 0.6;                          // ... of the other ranks
constexpr double kBetweenSteps_s = 0.01;
constexpr std::int64_t kTick_ns = 40'000'000;  // as the supervisor wakes a worker

struct Rank {
  explicit Rank(int number) : gpu("GPU-" + std::to_string(number)) {
    gpu.clocks = {Megahertz(kHighest), Megahertz(1120), Megahertz(900), Megahertz(235)};
    gpu.follows = [](int mhz) { return Megahertz(mhz == 0 ? kHighest : mhz); };
    gpu.call_takes_ns = 0;
    follower.set_maximum(kHighest);
  }
  [[nodiscard]] bool follows() const {
    return follower.plan() != nullptr && follower.plan()->kind == ClockPlan::Kind::plan && !follower.held();
  }
  [[nodiscard]] bool off_clock() const {
    const clock_control::DeviceClock clock = mailbox.device_clock.read();
    return clock.other.value() != 0 && clock.limited_by == 0;
  }

  clock_control::FakeGpu gpu;
  Mailbox mailbox;
  std::unique_ptr<device::DeviceResult<clock_control::Lease>> lease;
  std::unique_ptr<ClockWorker> worker;
  PlanGuard guard{0.01};
  PlanFollower follower;
  int asked = 0;
  int followed = 0;  ///< iterations
  std::vector<DroppedPlan> dropped;
};

class Job : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    for (int r = 0; r < GetParam(); ++r) {
      Rank& rank = *ranks_.emplace_back(std::make_unique<Rank>(r));
      rank.lease = std::make_unique<device::DeviceResult<clock_control::Lease>>(
          clock_control::Lease::take(rank.gpu.identity(), "fake:" + std::to_string(r), 0));
      rank.worker = std::make_unique<ClockWorker>(rank.mailbox, rank.gpu, **rank.lease, [this] { return now_ns_; });
      ASSERT_TRUE(rank.worker->begin());
    }
  }

  /// `clock`: of each rank and microbatch.
  void plan(std::int64_t version, const std::function<int(int, int)>& clock) {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      auto plan = std::make_unique<ClockPlan>();
      plan->kind = ClockPlan::Kind::plan;
      plan->version = version;
      plan->iteration_time_s = plan->maximum_clock_time_s = 0.25;
      for (const auto& [instruction, microbatch] : order(static_cast<int>(r))) {
        plan->clocks.push_back({instruction, clock(static_cast<int>(r), microbatch), microbatch, 0});
      }
      ranks_[r]->guard.arrives(*plan);
      ranks_[r]->follower.hold_maximum(ranks_[r]->guard.holds());
      ranks_[r]->follower.put(std::move(plan));
    }
  }
  /// The other ranks use their slack.
  void good_plan(std::int64_t version) {
    plan(version, [](int rank, int microbatch) {
      const bool has_slack = rank > 0 && microbatch >= kMicrobatches / 2 && microbatch < kMicrobatches - 1;
      return has_slack ? 1120 : kHighest;
    });
  }

  /// The host of rank `stalls` begins that much later. Returns the iteration's time.
  double iterates(int stalls = -1, double stall_s = 0) {
    const std::int64_t begin_ns = now_ns_;
    std::vector<Step> steps(ranks_.size());
    for (std::size_t r = 0; r < ranks_.size(); ++r) begin(*ranks_[r], steps[r]);
    const double took_s = run(steps, begin_ns, stalls, stall_s) + kBetweenSteps_s;
    const std::int64_t end_ns = begin_ns + static_cast<std::int64_t>(1e9 * took_s);
    while (now_ns_ < end_ns) {
      now_ns_ = std::min(now_ns_ + kTick_ns, end_ns);
      for (const auto& rank : ranks_) {
        if (!rank->worker->ended()) (void)rank->worker->work();
      }
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) judge(*ranks_[r], steps[r], took_s);
    ++iteration_;
    return took_s;
  }
  double iterate(int times) {
    double took_s = 0;
    for (int i = 0; i < times; ++i) took_s += iterates();
    return took_s;
  }

  std::vector<std::unique_ptr<Rank>> ranks_;

 private:
  /// 1F1B.
  [[nodiscard]] std::vector<std::pair<model::Instruction, int>> order(int rank) const {
    const int warm_up = std::min(static_cast<int>(ranks_.size()) - rank, kMicrobatches);
    std::vector<std::pair<model::Instruction, int>> all;
    int forwards = 0, backwards = 0;
    while (forwards < warm_up) all.emplace_back(model::Instruction::forward, forwards++);
    while (backwards < kMicrobatches) {
      all.emplace_back(model::Instruction::backward, backwards++);
      if (forwards < kMicrobatches) all.emplace_back(model::Instruction::forward, forwards++);
    }
    return all;
  }

  void begin(Rank& rank, Step& step) {
    rank.follower.hold_maximum(rank.guard.holds());
    rank.follower.begin_step(iteration_);
    step.iteration = iteration_;
    step.plan_version = rank.follower.plan() == nullptr ? 0 : rank.follower.plan()->version;
    step.at_maximum = rank.follower.plan() == nullptr;
    rank.followed += rank.follows() ? 1 : 0;
  }

  void request(Rank& rank, int mhz) {
    if (mhz == 0 || mhz == rank.asked) return;
    rank.asked = mhz;
    clock_control::ClockChange change;
    change.clock_mhz = static_cast<std::uint16_t>(mhz);
    change.now = true;
    change.posted_ns = now_ns_;
    rank.mailbox.queue.post(change);
    if (!rank.worker->ended()) (void)rank.worker->work();
  }

  /// Seconds from the first rank's begin to the end of all.
  double run(std::vector<Step>& steps, std::int64_t begin_ns, int stalls, double stall_s) {
    const int count = static_cast<int>(ranks_.size());
    std::vector<std::vector<std::pair<model::Instruction, int>>> orders;
    for (int r = 0; r < count; ++r) orders.push_back(order(r));
    const auto never = -1.0;
    std::vector<std::vector<double>> forward(count, std::vector<double>(kMicrobatches, never)), backward = forward;
    std::vector<double> free_s(count, 0);
    if (stalls >= 0) free_s[stalls] = stall_s;
    std::vector<std::size_t> next(count, 0);
    double end_s = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (int r = 0; r < count; ++r) {
        while (next[r] < orders[r].size()) {
          const auto [instruction, microbatch] = orders[r][next[r]];
          const bool is_forward = instruction == model::Instruction::forward;
          double ready_s = 0;
          if (is_forward && r > 0) ready_s = forward[r - 1][microbatch];
          if (!is_forward) ready_s = r + 1 < count ? backward[r + 1][microbatch] : forward[r][microbatch];
          if (ready_s == never) break;
          Rank& rank = *ranks_[r];
          const int asked = rank.follower.clock_for(instruction, microbatch, 0);
          rank.follower.begun(instruction, microbatch, 0);
          request(rank, asked);
          const double from_s = std::max(free_s[r], ready_s);
          const double at_highest_s = (is_forward ? kForward_s : kBackward_s) * (r == 0 ? 1 : kOthers);
          const double to_s = from_s + at_highest_s * kHighest / rank.gpu.running_at.value();
          (is_forward ? forward : backward)[r][microbatch] = free_s[r] = to_s;
          RecordedComputation computation;
          computation.begin = ns(begin_ns, from_s);
          computation.end = ns(begin_ns, to_s);
          computation.clock = rank.asked;
          computation.instruction = instruction;
          steps[r].computations.push_back(computation);
          end_s = std::max(end_s, to_s);
          ++next[r];
          moved = true;
        }
      }
    }
    return end_s;
  }
  static std::uint64_t ns(std::int64_t begin_ns, double at_s) {
    return static_cast<std::uint64_t>(begin_ns + static_cast<std::int64_t>(1e9 * at_s));
  }

  void judge(Rank& rank, Step& step, double took_s) {
    rank.follower.end_step();
    step.followed = rank.follower.followed();
    step.controlled = !rank.worker->ended();
    step.count = step.computations.size();
    GuardedIteration iteration = guarded_iteration(step, kHighest);
    iteration.time_s = took_s;
    iteration.other_clock = rank.off_clock();
    if (!rank.worker->ended()) rank.guard.take(iteration);
    if (const auto dropped = rank.guard.take_dropped()) rank.dropped.push_back(*dropped);
  }

  clock_control::LeaseFolder folder_;
  std::int64_t now_ns_ = 5'000'000'000;
  std::int64_t iteration_ = 0;
};

TEST_P(Job, StallsOfAHostEndNoSaving) {
  for (int stalls = 0; stalls < GetParam(); ++stalls) {
    for (const auto& rank : ranks_) rank->followed = 0;
    if (stalls == 0) {
      iterate(10);
      good_plan(1);
      iterate(5);
      for (const auto& rank : ranks_) rank->followed = 0;
    }
    for (int i = 0; i < 200; ++i) iterates(stalls, i % 20 < 2 ? 0.7 : 0);  // loader or checkpoint
    for (const auto& rank : ranks_) {
      EXPECT_EQ(rank->followed, 200) << stalls;
      EXPECT_TRUE(rank->dropped.empty()) << rank->dropped.front().text;
    }
  }
}

TEST_P(Job, AClockThatAnotherProcessLocksCostsASecondAndNoSaving) {
  const double usual_s = iterate(10) / 10;
  good_plan(1);
  iterate(100);
  for (int locked = 0; locked < GetParam(); ++locked) {
    for (const auto& rank : ranks_) rank->followed = 0;
    ranks_[static_cast<std::size_t>(locked)]->gpu.running_at = Megahertz(900);
    const double took_s = iterate(200);
    EXPECT_LE(took_s - 200 * usual_s, 1) << locked;
    for (const auto& rank : ranks_) {
      EXPECT_TRUE(rank->dropped.empty()) << rank->dropped.front().text;
      EXPECT_GE(rank->followed, 180) << locked;
    }
    EXPECT_GE(ranks_[static_cast<std::size_t>(locked)]->mailbox.device_clock.read().foreign, locked == 0 ? 1 : 0);
  }
  // The reference is still that of the highest clock: a plan that slows the critical rank is dropped.
  plan(2, [](int, int) { return 1120; });
  const double bad_s = iterate(120) - 120 * usual_s;
  EXPECT_LE(bad_s, 8 * usual_s);
  EXPECT_FALSE(ranks_[0]->dropped.empty());
}

TEST_P(Job, ALockOfTheCriticalGpuDuringATrialBecomesNoReference) {
  iterate(10);
  plan(1, [](int, int) { return 1120; });  // slower by a quarter
  for (int i = 0; i < 40; ++i) {
    if (i % 8 == 0) ranks_[0]->gpu.running_at = Megahertz(900);
    iterates();
  }
  iterate(300);
  EXPECT_FALSE(ranks_[0]->dropped.empty());
}

TEST_P(Job, AClockThatIsLockedAgainAndAgainEndsTheControlOfThatRankAlone) {
  iterate(10);
  good_plan(1);
  for (int i = 0; i < 400; ++i) {
    if (!ranks_[0]->worker->ended()) ranks_[0]->gpu.running_at = Megahertz(900);
    iterates();
    iterate(3);
  }
  EXPECT_TRUE(ranks_[0]->worker->ended());
  EXPECT_THAT(ranks_[0]->mailbox.why_ended.read(), ::testing::HasSubstr("another process changes"));
  for (std::size_t r = 1; r < ranks_.size(); ++r) {
    EXPECT_FALSE(ranks_[r]->worker->ended());
    ranks_[r]->followed = 0;
  }
  iterate(100);
  for (std::size_t r = 1; r < ranks_.size(); ++r) EXPECT_EQ(ranks_[r]->followed, 100);
}

TEST_P(Job, ARankAtItsLowestClockSlowsTheJobForAFewIterations) {
  const double usual_s = iterate(10) / 10;
  for (int slow = 0; slow < GetParam(); ++slow) {
    plan(slow + 1, [=](int rank, int) { return rank == slow ? 235 : kHighest; });
    EXPECT_LE(iterate(100) - 100 * usual_s, 20 * usual_s) << slow;
    EXPECT_LE(iterate(2000) - 2000 * usual_s, 0.01 * 2000 * usual_s) << slow;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Job, ::testing::Values(2, 4));

}  // namespace
}  // namespace perseus::client::pipeline
