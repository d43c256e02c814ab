// Workers whose hosts run ahead of simulated GPUs: the lead must not change the device's times, and all workers must
// follow commands alike.
#include "simulation/replay/asynchronous_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "planning/checker/plan_run.h"
#include "planning/model/build_dag.h"
#include "planning/model/computation_dag.h"
#include "planning/model/make_schedule.h"
#include "planning/model/reference_plans.h"
#include "planning/model/schedule.h"
#include "simulation/replay/simulated_device.h"
#include "simulation/replay/simulated_ranks.h"

namespace perseus::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kRanks = 2, kReplicas = 2, kWorkers = kRanks * kReplicas;
constexpr double kBlockingW = 80;

/// Two stages, the second with more work; transfers take time, and a sending rank waits for the transfer's end.
model::ComputationDag pipeline() {
  model::Profile profile;
  for (const int stage : {0, 1}) {
    profile.accelerators.push_back(1);
    for (const auto& [instruction, least_s] : {std::pair("forward", 0.03), std::pair("backward", 0.05)}) {
      const double time_s = least_s * (1 + 0.2 * stage);
      model::ProfileEntry entry;
      entry.stage = stage;
      entry.instruction = instruction;
      for (const int mhz : {1400, 700}) {
        model::Measurement m;
        m.clock = Megahertz(mhz);
        m.time = Seconds(time_s * 1400 / mhz);
        m.energy = Joules(m.time.value() * (mhz == 1400 ? 300 : 180));
        entry.measurements.push_back(m);
      }
      profile.entries.push_back(entry);
    }
  }
  const auto schedule = model::make_schedule("1f1b", {kRanks, 3, 1});
  EXPECT_TRUE(schedule);
  const auto dag = model::build_dag(profile, *schedule, {Watts(kBlockingW), Seconds(0.002), true});
  EXPECT_TRUE(dag) << (dag ? "" : dag.error().message);
  return *dag;
}

replay::SimulatedRankOptions gpu_options() {
  replay::SimulatedRankOptions options;
  options.blocking_power = Watts(kBlockingW);
  options.idle_power = Watts(50);
  return options;
}

/// One set of GPUs for all tests of this process, because a process finds its CUDA devices once; and one GPU that a
/// test may break.
class GpusOfProcess {
 public:
  explicit GpusOfProcess(const model::ComputationDag& dag) {
    folder_ = (std::filesystem::temp_directory_path() / "perseus-replay-XXXXXX").string();
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    std::string files;
    for (int i = 0; i < 2 * kWorkers; ++i) {
      const std::string file = folder_ + "/gpu_" + std::to_string(i);
      auto gpu = simulated_gpu::SimulatedGpu::create(file, replay::gpu_of_rank(dag, i % kRanks, gpu_options()));
      EXPECT_TRUE(gpu);
      files += (i > 0 ? ":" : "") + file;
    }
    setenv("PERSEUS_SIMULATED_GPUS", files.c_str(), 1);
  }
  GpusOfProcess(const GpusOfProcess&) = delete;
  GpusOfProcess& operator=(const GpusOfProcess&) = delete;
  ~GpusOfProcess() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

 private:
  std::string folder_;
};

/// Records the calls of the framework's hooks, in order, and the greatest lead of the host over the device.
class HookLog final : public replay::WorkerClient {
 public:
  std::string start(const std::string& job) override {
    started_at_ = steps_;
    return job.empty() ? "job-1" : job;
  }
  void step_begin() override { calls_.emplace_back("step", static_cast<int>(steps_)); }
  void step_end() override { ++steps_; }
  void set_speed(const replay::ScriptStep& step) override { calls_.emplace_back("speed", step.computation); }
  void begin(const replay::ScriptStep& step, double) override {
    calls_.emplace_back("begin", step.computation);
    begun_s_.push_back(replay::monotonic_now_s());
  }
  void end(const replay::ScriptStep& step, double) override { calls_.emplace_back("end", step.computation); }
  std::vector<std::pair<std::string, int>> calls_;
  std::vector<double> begun_s_;  ///< host times, per computation
  std::int64_t steps_ = 0, started_at_ = -1;
};

struct AheadReplay {
  std::vector<std::vector<replay::RankReport>> of_worker{kWorkers};
  std::vector<HookLog> listeners{kWorkers};
  std::vector<std::string> errors{kWorkers};
  std::string job;
};

/// Queues `commands` before worker 0 starts, which executes them in order. `dies`: the worker that breaks its links.
AheadReplay replay_ahead(const model::ComputationDag& dag, const replay::HostAhead& ahead,
                         const std::vector<std::string>& commands, int first_gpu = 0, int dies = -1) {
  static const GpusOfProcess gpus(dag);
  std::vector<std::map<int, int>> ends(kWorkers);
  std::map<int, int> own;
  for (int a = 0; a < kWorkers; ++a) {
    for (int b = 0; b < a; ++b) {
      const auto pair = replay::socket_pair();
      ends[a][b] = pair->first;
      ends[b][a] = pair->second;
    }
    const auto pair = replay::socket_pair();
    own[a] = pair->first;
    ends[a][replay::kLauncher] = pair->second;
  }
  AheadReplay result;
  replay::PeerLinks links(own);
  std::int64_t number = 0;
  for (const std::string& command : commands) {
    EXPECT_TRUE(links.send(0, {replay::MessageKind::command, number++, 0, 0, command}));
  }
  std::vector<std::thread> threads;
  for (int w = 0; w < kWorkers; ++w) {
    threads.emplace_back([&, w] {
      replay::PeerLinks peers(ends[w]);
      if (w == dies) return;
      const replay::WorkerOptions options{{kReplicas, kRanks, w / kRanks, w % kRanks}, 100};
      const replay::RankScript script = replay::script_of(dag, options.place.rank);
      std::map<int, std::string> kernel_of;
      const simulated_gpu::SimulatedGpuSpec spec = replay::gpu_of_rank(dag, options.place.rank, gpu_options());
      for (const int type : replay::types_of(dag, options.place.rank)) {
        kernel_of.emplace(type, spec.computations[kernel_of.size()].name);
      }
      auto device = replay::CudaDevice::open(CUDA_SIMULATED, first_gpu + w, kernel_of);
      if (!device) {
        result.errors[w] = device.error().message;
        return;
      }
      const Status done = replay::run_asynchronous_worker(options, ahead, script, peers, **device, result.listeners[w]);
      if (!done) result.errors[w] = done.error().message;
    });
  }
  int open = kWorkers;
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (open > 0) {
    PERSEUS_CHECK(std::chrono::steady_clock::now() < limit, "the workers end within two minutes");
    EXPECT_TRUE(links.look(50));
    while (auto note = links.take(replay::MessageKind::note)) result.job = note->message.payload;
    while (auto came = links.take(replay::MessageKind::report)) {
      const auto report = replay::report_from(came->message.payload);
      EXPECT_TRUE(report);
      if (report) result.of_worker[came->peer].push_back(*report);
    }
    open = 0;
    for (int w = 0; w < kWorkers; ++w) open += links.closed(w) ? 0 : 1;
  }
  for (std::thread& thread : threads) thread.join();
  return result;
}

class Ahead : public ::testing::TestWithParam<int> {};

// Delays that a busy machine adds to the simulation are in `lost_s`; without them, the times equal the simulator's.
TEST_P(Ahead, TimesAndEnergiesAreThoseOfASynchronousHost) {
  const model::ComputationDag dag = pipeline();
  const model::Plan plan = model::all_maximum_clock(dag);
  const checker::PlanRun expected = checker::run_plan(dag, plan);
  const AheadReplay replayed = replay_ahead(dag, {GetParam(), 2}, {"run", "run", "run", "stop"});
  const std::size_t iterations = replayed.of_worker[0].size();
  ASSERT_GE(iterations, 4U);  // more, if the first ones were enqueued before the first command was read
  int undisturbed = 0;
  for (std::size_t k = 0; k < iterations; ++k) {
    double lost_s = 0;
    for (int w = 0; w < kWorkers; ++w) {
      ASSERT_EQ(replayed.errors[w], "");
      ASSERT_EQ(replayed.of_worker[w].size(), iterations);
      const replay::RankReport& report = replayed.of_worker[w][k];
      EXPECT_EQ(report.iteration, static_cast<std::int64_t>(k));
      EXPECT_EQ(report.start_s, replayed.of_worker[0][k].start_s) << "the same for all";
      EXPECT_EQ(report.end_s, replayed.of_worker[0][k].end_s);
      if (k > 0) { EXPECT_EQ(report.start_s, replayed.of_worker[w][k - 1].end_s); }
      lost_s += report.lost_s;
    }
    if (lost_s > 1e-6) continue;
    ++undisturbed;
    for (int w = 0; w < kWorkers; ++w) {
      const replay::RankReport& report = replayed.of_worker[w][k];
      EXPECT_NEAR(report.end_s - report.start_s, expected.makespan.value(), 1e-6);
      double energy_j = kBlockingW * expected.makespan.value();
      ASSERT_EQ(report.stamps.size(), dag.rank_order[w % kRanks].size());
      for (std::size_t i = 0; i < report.stamps.size(); ++i) {
        const replay::ComputationStamp& stamp = report.stamps[i];
        ASSERT_EQ(stamp.computation, dag.rank_order[w % kRanks][i]) << "order";
        EXPECT_NEAR(stamp.start_s - report.start_s, expected.start[stamp.computation].value(), 1e-6);
        EXPECT_NEAR(stamp.end_s - report.start_s, expected.end[stamp.computation].value(), 1e-6);
        EXPECT_EQ(stamp.clock_mhz, 1400);
        const model::Measurement& option = dag.type_of(stamp.computation).options[plan[stamp.computation]];
        EXPECT_NEAR(stamp.energy_j, option.energy.value(), 1e-4);
        energy_j += option.energy.value() - kBlockingW * option.time.value();
      }
      EXPECT_NEAR(report.energy_j, energy_j, 1e-3);
    }
  }
  EXPECT_GT(undisturbed, 0) << "this machine was too busy in every iteration";
}

TEST_P(Ahead, TheFrameworkCallsItsHooksInOrder) {
  const model::ComputationDag dag = pipeline();
  const AheadReplay replayed = replay_ahead(dag, {GetParam(), 2}, {"run", "stop"});
  for (int w = 0; w < kWorkers; ++w) {
    std::vector<std::pair<std::string, int>> expected;
    for (int k = 0; k < static_cast<int>(replayed.of_worker[w].size()); ++k) {
      expected.emplace_back("step", k);
      for (const int i : dag.rank_order[w % kRanks]) {
        for (const char* what : {"speed", "begin", "end"}) expected.emplace_back(what, i);
      }
    }
    EXPECT_EQ(replayed.listeners[w].calls_, expected);
  }
}

TEST_P(Ahead, TheHostIsAsFarAheadAsItMayBeAndNoFurther) {
  const model::ComputationDag dag = pipeline();
  const int computations = GetParam() == 0 ? 1000 : GetParam();
  const AheadReplay replayed = replay_ahead(dag, {GetParam(), 2}, {"run", "run", "stop"});
  for (int w = 0; w < kWorkers; ++w) {
    const std::vector<double>& begun_s = replayed.listeners[w].begun_s_;
    std::vector<double> ended_s, iteration_ended_s;
    for (const replay::RankReport& report : replayed.of_worker[w]) {
      for (const replay::ComputationStamp& stamp : report.stamps) ended_s.push_back(stamp.end_s);
      iteration_ended_s.push_back(report.end_s);
    }
    ASSERT_EQ(begun_s.size(), ended_s.size());
    const int a_step = static_cast<int>(dag.rank_order[w % kRanks].size());
    int ahead = 0, furthest = 0;
    for (int n = 0; n < static_cast<int>(begun_s.size()); ++n) {
      while (ended_s[ahead] <= begun_s[n]) ++ahead;
      furthest = std::max(furthest, n - ahead);
      if (n > computations) { EXPECT_GE(begun_s[n], ended_s[n - computations - 1]) << n; }
      if (n >= 2 * a_step) { EXPECT_GE(begun_s[n], iteration_ended_s[n / a_step - 2]) << n; }
    }
    EXPECT_EQ(furthest, std::min(computations, 2 * a_step - 1));
  }
}

TEST_P(Ahead, AllFollowACommandAfterTheSameIteration) {
  const model::ComputationDag dag = pipeline();
  const AheadReplay replayed = replay_ahead(dag, {GetParam(), 2}, {"run", "client", "run", "stop"});
  EXPECT_EQ(replayed.job, "job-1");
  for (int w = 0; w < kWorkers; ++w) {
    EXPECT_EQ(replayed.errors[w], "");
    EXPECT_EQ(replayed.of_worker[w].size(), replayed.of_worker[0].size());
    EXPECT_EQ(replayed.listeners[w].started_at_, replayed.listeners[0].started_at_);
    EXPECT_GT(replayed.listeners[w].started_at_, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Depths, Ahead, ::testing::Values(1, 2, 8, 0), [](const auto& ahead) {
  return ahead.param == 0 ? std::string("Unbounded") : "By" + std::to_string(ahead.param);
});

TEST(AsynchronousWorker, ItEndsWhenAPeerIsGone) {
  const model::ComputationDag dag = pipeline();
  const AheadReplay replayed = replay_ahead(dag, {0, 2}, {}, kWorkers, 3);
  for (int w = 0; w < kWorkers - 1; ++w) EXPECT_THAT(replayed.errors[w], HasSubstr("has ended")) << w;
}

}  // namespace
}  // namespace perseus::testing
