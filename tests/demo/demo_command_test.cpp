// The demo as a whole, small and quick: what it leaves behind, and that it leaves nothing else behind however it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "simulated_gpu/simulated_gpu.h"
#include "tests/integration/program.h"

namespace perseus::testing {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr auto patience = std::chrono::seconds(60);

/// A demo of two stages that is over soon.
std::vector<std::string> small_demo(const ScratchFolder& scratch, int iterations = 2) {
  std::vector<std::string> words{"demo",
                                 "--known-profile",
                                 "--json",
                                 "--stages",
                                 "2",
                                 "-m",
                                 "3",
                                 "--iterations",
                                 std::to_string(iterations),
                                 "--time-scale",
                                 "0.2",
                                 "--dp",
                                 "1",
                                 "--out",
                                 scratch.path("out"),
                                 "--scratch",
                                 scratch.path("work")};
  return words;
}

/// Processes of that demo: its scratch folder is in their command lines.
std::vector<pid_t> processes_of(const ScratchFolder& scratch, const std::string& program) {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (!std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; })) continue;
    std::ifstream file(entry.path() / "cmdline", std::ios::binary);
    const std::string line{std::istreambuf_iterator<char>(file), {}};
    if (line.find(scratch.path("work")) == std::string::npos) continue;
    if (line.substr(0, line.find('\0')).ends_with(program)) found.push_back(std::stoi(name));
  }
  return found;
}

std::vector<std::string> locked_gpus(const ScratchFolder& scratch) {
  std::vector<std::string> locked;
  std::error_code none_yet;
  for (const auto& entry : fs::directory_iterator(scratch.path("work"), none_yet)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("gpu_")) continue;
    const auto gpu = SimulatedGpu::attach(entry.path().string());
    if (gpu && (*gpu)->locked()) locked.push_back(name);
  }
  return locked;
}

template <class Condition>
bool comes_true(Condition condition) {
  for (const auto until = Clock::now() + patience; Clock::now() < until;) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return condition();
}

void expect_nothing_left(const ScratchFolder& scratch) {
  EXPECT_TRUE(comes_true([&] { return locked_gpus(scratch).empty(); })) << "a clock is still locked";
  EXPECT_TRUE(comes_true([&] { return processes_of(scratch, "").empty(); })) << "a process is left";
}

/// Does `what` as soon as a plan holds a clock.
RunOptions once_clocks_are_locked(const ScratchFolder& scratch, std::function<void(pid_t)> what) {
  RunOptions options;
  options.meanwhile = [&scratch, what = std::move(what)](pid_t program) {
    EXPECT_TRUE(comes_true([&] { return !locked_gpus(scratch).empty() || kill(program, 0) != 0; }));
    EXPECT_FALSE(locked_gpus(scratch).empty()) << "the demo was over before";
    what(program);
  };
  return options;
}

TEST(Demo, LeavesASummaryAndNothingElse) {
  const ScratchFolder scratch;
  const Outcome outcome = run_perseus(small_demo(scratch));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json::value summary = json::parse(content_of(scratch.path("out/summary.json")));
  EXPECT_EQ(summary, json::parse(outcome.out));
  std::vector<std::string> keys;
  for (const auto& [key, value] : summary.as_object()) keys.emplace_back(key);
  EXPECT_THAT(keys,
              ::testing::UnorderedElementsAre("baseline_time_s", "baseline_energy_j", "plan_time_s", "plan_energy_j",
                                              "energy_saving_pct", "slowdown_pct", "straggler_energy_saving_pct",
                                              "predicted_energy_saving_pct", "client_overhead_pct"));
  EXPECT_GT(summary.at("energy_saving_pct").to_number<double>(), 0);
  EXPECT_GT(summary.at("predicted_energy_saving_pct").to_number<double>(), 0);
  EXPECT_TRUE(summary.at("straggler_energy_saving_pct").is_null()) << "one replica has no straggler";
  const std::string page = content_of(scratch.path("out/report.html"));
  EXPECT_THAT(page, HasSubstr("simulated"));
  EXPECT_THAT(page, HasSubstr("the plan, measured"));
  EXPECT_TRUE(fs::exists(scratch.path("out/details.json")));
  expect_nothing_left(scratch);
}

TEST(Demo, KilledInTheMiddleLocksNoClock) {
  const ScratchFolder scratch;
  const Outcome outcome =
      run_perseus(small_demo(scratch, 30), once_clocks_are_locked(scratch, [](pid_t demo) { kill(demo, SIGKILL); }));
  EXPECT_EQ(outcome.signal, SIGKILL);
  EXPECT_FALSE(fs::exists(scratch.path("out")));
  expect_nothing_left(scratch);
}

TEST(Demo, InterruptedItEndsInOrder) {
  const ScratchFolder scratch;
  const Outcome outcome =
      run_perseus(small_demo(scratch, 30), once_clocks_are_locked(scratch, [](pid_t demo) { kill(demo, SIGINT); }));
  EXPECT_EQ(outcome.signal, SIGINT);
  EXPECT_THAT(outcome.err, HasSubstr("interrupted"));
  EXPECT_FALSE(fs::exists(scratch.path("out")));
  EXPECT_TRUE(locked_gpus(scratch).empty());
  EXPECT_TRUE(processes_of(scratch, "").empty());
}

TEST(Demo, AWorkerThatDiesEndsItWithAWord) {
  const ScratchFolder scratch;
  const Outcome outcome = run_perseus(small_demo(scratch, 30), once_clocks_are_locked(scratch, [&](pid_t) {
                                        const auto workers = processes_of(scratch, "perseus-replay");
                                        ASSERT_EQ(workers.size(), 2u);
                                        kill(workers.back(), SIGKILL);
                                      }));
  EXPECT_EQ(outcome.exit_code, 69);
  EXPECT_THAT(outcome.err, HasSubstr("was killed by signal 9"));
  EXPECT_FALSE(fs::exists(scratch.path("out")));
  expect_nothing_left(scratch);
}

}  // namespace
}  // namespace perseus::testing
