// The launcher of workers, with programs in place of the workers that end at once.
#include "simulation/replay/training_replay.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "oracles/instances.h"
#include "tests/support/signal_process.h"

namespace perseus::testing {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<replay::TrainingReplay> launch_what_ends_at_once(double report_limit_s) {
  SeededDice dice(3);
  const model::ComputationDag dag = random_pipeline(dice, "1f1b", {.max_ranks = 2, .max_microbatches = 2});
  replay::ReplayOptions options;
  options.program = "/bin/true";
  options.gpus.assign(dag.num_ranks(), "none");
  options.report_limit_s = report_limit_s;
  return *replay::TrainingReplay::launch(dag, options);
}

TEST(TrainingReplay, AWorkerThatEndsUntoldIsNamed) {
  const auto iteration = launch_what_ends_at_once(60)->next_iteration();
  ASSERT_FALSE(iteration);
  EXPECT_THAT(iteration.error().message, HasSubstr("ended with exit code 0"));
}

// On a busy machine some workers end before the last report of others arrives.
TEST(TrainingReplay, AWorkerThatEndsOnRequestIsNoFailure) {
  const auto replay = launch_what_ends_at_once(0.3);
  (void)replay->command("stop");
  const auto iteration = replay->next_iteration();
  ASSERT_FALSE(iteration);
  EXPECT_THAT(iteration.error().message, HasSubstr("has not ended within")) << "reports were waited for";
  EXPECT_TRUE(replay->finish(30));
}

/// A program that waits and ignores its arguments.
class WaitingProgram {
 public:
  WaitingProgram() {
    std::ofstream(path_) << "#!/bin/sh\nexec sleep 600\n";
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
  }
  WaitingProgram(const WaitingProgram&) = delete;
  WaitingProgram& operator=(const WaitingProgram&) = delete;
  ~WaitingProgram() { std::filesystem::remove(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_ = fmt::format("{}/perseus_waits_{}", ::testing::TempDir(), getpid());
};

TEST(TrainingReplay, AStoppedWorkerIsNamedWhileTrainingStandsStill) {
  const WaitingProgram program;
  SeededDice dice(3);
  const model::ComputationDag dag = random_pipeline(dice, "1f1b", {.max_ranks = 2, .max_microbatches = 2});
  replay::ReplayOptions options;
  options.program = program.path();
  options.gpus.assign(dag.num_ranks(), "none");
  options.report_limit_s = 60;
  options.silence_s = 0.05;
  std::vector<std::string> said;
  options.on_silence = [&](const std::string& who) { said.push_back(who); };
  options.interrupted = [&] { return !said.empty() && said.back().starts_with("stopped"); };
  const auto replay = *replay::TrainingReplay::launch(dag, options);
  const pid_t last = replay->pids().back();
  testing::signal_process(last, SIGSTOP);
  EXPECT_FALSE(replay->next_iteration()) << "it was interrupted";
  ASSERT_FALSE(said.empty());
  EXPECT_EQ(said.back(), fmt::format("stopped by a signal: worker {} (process {})", dag.num_ranks() - 1, last));
  testing::signal_process(last, SIGCONT);
}

TEST(TrainingReplay, WorkersThatReportNothingAreNamed) {
  const WaitingProgram program;
  SeededDice dice(3);
  const model::ComputationDag dag = random_pipeline(dice, "1f1b", {.max_ranks = 1, .max_microbatches = 2});
  replay::ReplayOptions options;
  options.program = program.path();
  options.gpus = {"none"};
  options.report_limit_s = 0.05;
  const auto replay = *replay::TrainingReplay::launch(dag, options);
  const auto iteration = replay->next_iteration();
  ASSERT_FALSE(iteration);
  EXPECT_THAT(iteration.error().message, HasSubstr("no report of iteration 0 from worker 0 (process "));
}

}  // namespace
}  // namespace perseus::testing
