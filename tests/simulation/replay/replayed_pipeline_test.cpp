// Workers over real sockets, with devices in virtual time: their iterations must equal those of the independent
// simulator.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "oracles/instances.h"
#include "planning/checker/plan_run.h"
#include "planning/model/make_schedule.h"
#include "planning/model/schedule.h"
#include "simulation/replay/worker.h"

namespace perseus::testing {
namespace {

/// Takes exactly the time and energy of the plan's options, in virtual time.
class VirtualDevice final : public replay::ReplayDevice {
 public:
  VirtualDevice(const model::ComputationDag& dag, const model::Plan& plan, int rank)
      : dag_(dag), plan_(plan), order_(dag.rank_order[rank]) {}
  double now_s() override { return 0; }
  replay::ComputationStamp run(int type, double start_s, const std::function<void(double)>& started) override {
    const int computation = order_[next_++ % order_.size()];
    EXPECT_EQ(dag_.computations[computation].type, type);
    const model::Measurement& option = dag_.types[type].options[plan_[computation]];
    started(start_s);
    energy_j_ += option.energy.value();
    return {computation, option.clock.value(), start_s, start_s + option.time.value(), option.energy.value()};
  }
  double energy_j(double /*until_s*/) override { return energy_j_; }

 private:
  const model::ComputationDag& dag_;
  const model::Plan& plan_;
  const std::vector<int>& order_;
  std::size_t next_ = 0;
  double energy_j_ = 0;
};

/// Records the calls of the framework's hooks, in order.
class Listener final : public replay::WorkerClient {
 public:
  void set_speed(const replay::ScriptStep& step) override { called("speed", step); }
  void begin(const replay::ScriptStep& step, double) override { called("begin", step); }
  void end(const replay::ScriptStep& step, double) override { called("end", step); }
  [[nodiscard]] const std::vector<std::pair<std::string, int>>& calls() const { return calls_; }

 private:
  void called(const char* what, const replay::ScriptStep& step) { calls_.emplace_back(what, step.computation); }
  std::vector<std::pair<std::string, int>> calls_;
};

struct Replayed {
  std::vector<std::vector<replay::RankReport>> of_worker;
  std::vector<Listener> listeners;
  std::vector<std::string> errors;
};

/// Runs `iterations` iterations of this many replicas, one thread per worker; this function is the launcher.
Replayed replay(const model::ComputationDag& dag, const std::vector<model::Plan>& plan_of_replica, int iterations) {
  const int replicas = static_cast<int>(plan_of_replica.size()), ranks = dag.num_ranks(), workers = replicas * ranks;
  std::vector<std::map<int, int>> ends(workers);
  std::map<int, int> own;
  const auto connect = [&](int a, int b) {
    if (a == b || ends[a].contains(b)) return;
    const auto pair = replay::socket_pair();
    ends[a][b] = pair->first;
    ends[b][a] = pair->second;
  };
  for (int a = 0; a < workers; ++a) {
    for (int b = 0; b < a; ++b) connect(a, b);
    const auto pair = replay::socket_pair();
    own[a] = pair->first;
    ends[a][replay::kLauncher] = pair->second;
  }
  Replayed result{std::vector<std::vector<replay::RankReport>>(workers), std::vector<Listener>(workers),
                  std::vector<std::string>(workers)};
  replay::PeerLinks links(own);
  // Worker 0 reads a command after each iteration, so these make it stop after the last one. It does not wait for a
  // command, so the test queues them before it starts.
  for (int i = 1; i <= iterations; ++i) {
    EXPECT_TRUE(links.send(0, {replay::MessageKind::command, i, 0, 0, i < iterations ? "run" : "stop"}));
  }
  std::vector<std::thread> threads;
  for (int w = 0; w < workers; ++w) {
    threads.emplace_back([&, w] {
      const replay::WorkerOptions options{{replicas, ranks, w / ranks, w % ranks}, 100};
      const replay::RankScript script = replay::script_of(dag, options.place.rank);
      replay::PeerLinks peers(ends[w]);
      VirtualDevice device(dag, plan_of_replica[options.place.replica], options.place.rank);
      const Status done = replay::run_worker(options, script, peers, device, result.listeners[w]);
      if (!done) result.errors[w] = done.error().message;
    });
  }
  int open = workers;
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (open > 0) {
    PERSEUS_CHECK(std::chrono::steady_clock::now() < limit, "the workers end within two minutes");
    EXPECT_TRUE(links.look(50));
    while (auto came = links.take(replay::MessageKind::report)) {
      const auto report = replay::report_from(came->message.payload);
      EXPECT_TRUE(report);
      if (report) result.of_worker[came->peer].push_back(*report);
    }
    open = 0;
    for (int w = 0; w < workers; ++w) open += links.closed(w) ? 0 : 1;
  }
  for (std::thread& thread : threads) thread.join();
  return result;
}

bool near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max({1.0, std::abs(a), std::abs(b)}); }

RC_GTEST_PROP(Replay, AgreesWithThePlanRun, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = random_dag(dice, {.max_ranks = 4, .max_microbatches = 4});
  std::vector<model::Plan> plans(dice.roll(1, 2));
  for (model::Plan& plan : plans) plan = random_plan(dice, dag);
  const int iterations = dice.roll(1, 3), ranks = dag.num_ranks();

  const Replayed replayed = replay(dag, plans, iterations);
  double longest = 0;
  std::vector<checker::PlanRun> simulated;
  for (const model::Plan& plan : plans) {
    simulated.push_back(checker::run_plan(dag, plan));
    longest = std::max(longest, simulated.back().makespan.value());
  }
  for (int w = 0; w < static_cast<int>(plans.size()) * ranks; ++w) {
    const checker::PlanRun& expected = simulated[w / ranks];
    RC_ASSERT(replayed.errors[w].empty());
    RC_ASSERT(static_cast<int>(replayed.of_worker[w].size()) == iterations);
    for (int k = 0; k < iterations; ++k) {
      const replay::RankReport& report = replayed.of_worker[w][k];
      RC_ASSERT(report.iteration == k);
      RC_ASSERT(near(report.start_s, k * longest));  // replicas wait for the slowest
      RC_ASSERT(near(report.end_s, (k + 1) * longest));
      RC_ASSERT(report.stamps.size() == dag.rank_order[w % ranks].size());
      for (std::size_t i = 0; i < report.stamps.size(); ++i) {
        const replay::ComputationStamp& stamp = report.stamps[i];
        RC_ASSERT(stamp.computation == dag.rank_order[w % ranks][i]);
        RC_ASSERT(near(stamp.start_s - report.start_s, expected.start[stamp.computation].value()));
        RC_ASSERT(near(stamp.end_s - report.start_s, expected.end[stamp.computation].value()));
      }
    }
  }
}

TEST(Replay, RunsEverySchedule) {
  for (const std::string& schedule : model::schedule_names()) {
    SeededDice dice(5);
    const model::ComputationDag dag = random_pipeline(dice, schedule, {.max_ranks = 4, .max_microbatches = 8});
    const model::Plan plan = random_plan(dice, dag);
    const checker::PlanRun expected = checker::run_plan(dag, plan);
    const Replayed replayed = replay(dag, {plan}, 1);
    for (int rank = 0; rank < dag.num_ranks(); ++rank) {
      EXPECT_EQ(replayed.errors[rank], "") << schedule;
      ASSERT_EQ(replayed.of_worker[rank].size(), 1U) << schedule;
      const replay::RankReport& report = replayed.of_worker[rank][0];
      EXPECT_TRUE(near(report.end_s, expected.makespan.value())) << schedule;
      std::vector<int> ran;
      for (const replay::ComputationStamp& stamp : report.stamps) ran.push_back(stamp.computation);
      EXPECT_EQ(ran, dag.rank_order[rank]) << schedule;
    }
  }
}

TEST(Replay, TheFrameworkCallsSpeedBeginEndForEachComputationInOrder) {
  SeededDice dice(7);
  const model::ComputationDag dag = random_pipeline(dice, "1f1b", {.max_ranks = 3, .max_microbatches = 3});
  const Replayed replayed = replay(dag, {random_plan(dice, dag)}, 1);
  for (int rank = 0; rank < dag.num_ranks(); ++rank) {
    std::vector<std::pair<std::string, int>> expected;
    for (const int i : dag.rank_order[rank]) {
      for (const char* what : {"speed", "begin", "end"}) expected.emplace_back(what, i);
    }
    EXPECT_EQ(replayed.listeners[rank].calls(), expected);
  }
}

}  // namespace
}  // namespace perseus::testing
