// `perseus demo --story power`: its verdict is that of its power.csv, also with the server killed at five random
// moments, and it fails where GPUs ignore their clocks.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "simulation/simulated_gpu/simulated_gpu.h"
#include "tests/apps/perseus/program.h"
#include "tests/support/signal_process.h"

namespace perseus::testing {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using ::testing::HasSubstr;

std::vector<std::string> power_story(const ScratchFolder& scratch, double time_scale) {
  return {"demo",         "--story",
          "power",        "--json",
          "--time-scale", std::to_string(time_scale),
          "--out",        scratch.path("out"),
          "--scratch",    scratch.path("work")};
}

std::vector<std::unique_ptr<simulated_gpu::SimulatedGpu>> gpus_of_story(const ScratchFolder& scratch) {
  std::vector<std::unique_ptr<simulated_gpu::SimulatedGpu>> gpus;
  for (const char* job : {"pipeline", "interleaved", "replicas"}) {
    for (int gpu = 0; gpu < 4; ++gpu) {
      auto found =
          simulated_gpu::SimulatedGpu::attach(scratch.path("work") + "/" + job + "/gpu_" + std::to_string(gpu));
      if (found) gpus.push_back(*std::move(found));
    }
  }
  return gpus;
}

constexpr int kNotSupported = 3;  // NVML_ERROR_NOT_SUPPORTED

struct Reading {
  double at_s = 0, energy_j = 0, limit_w = 0;
};

/// The columns time_s, energy_j and limit_w (0: none yet) of power.csv.
std::vector<Reading> readings_of(const std::string& csv) {
  std::vector<Reading> readings;
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "time_s,energy_j,power_w,window_w,limit_w,judged");
  while (std::getline(lines, line)) {
    std::istringstream cells(line);
    std::vector<std::string> cell(6);
    for (std::string& text : cell) std::getline(cells, text, ',');
    readings.push_back({std::stod(cell[0]), std::stod(cell[1]), cell[4].empty() ? 0 : std::stod(cell[4])});
  }
  return readings;
}

struct Windows {
  int count = 0;
  double most_over_w = -1e9;  ///< of the mean power over a window, above the mean of the limit
};

/// From energies and limits alone. The limit's steps lie between readings, so a window with a step is up to an
/// interval's step off: such windows are left out.
Windows windows_of(const std::vector<Reading>& readings, double from_s, double until_s, double window_s) {
  Windows windows;
  for (std::size_t a = 0; a < readings.size(); ++a) {
    if (readings[a].at_s < from_s) continue;
    double limit_j = 0;
    bool steps = false;
    std::size_t b = a;
    while (b < readings.size() && readings[b].at_s < readings[a].at_s + window_s - 0.01) {
      if (++b == readings.size()) return windows;
      const double time_s = readings[b].at_s - readings[b - 1].at_s;
      limit_j += time_s * (readings[b].limit_w + readings[b - 1].limit_w) / 2;
      steps = steps || std::abs(readings[b].limit_w - readings[b - 1].limit_w) > 100;
    }
    if (readings[b].at_s > until_s) break;
    if (steps) continue;
    const double time_s = readings[b].at_s - readings[a].at_s;
    ++windows.count;
    windows.most_over_w =
        std::max(windows.most_over_w, (readings[b].energy_j - readings[a].energy_j - limit_j) / time_s);
  }
  return windows;
}

double number(const json::value& value, const char* key) { return value.at(key).to_number<double>(); }

TEST(PowerStory, TheLimitIsKeptThoughTheServerAndAJobDie) {
  const ScratchFolder scratch;
  constexpr int kills = 5;
  const unsigned seed = std::random_device{}();
  std::vector<std::string> words = power_story(scratch, 0.25);
  words.insert(words.end(), {"--server-kills", std::to_string(kills), "--seed", std::to_string(seed)});
  const Outcome outcome = run_perseus(words);
  ASSERT_EQ(outcome.exit_code, 0) << "seed " << seed << "\n" << outcome.err << outcome.out;
  const json::value summary = json::parse(outcome.out);
  EXPECT_EQ(summary, json::parse(content_of(scratch.path("out/summary.json"))));
  EXPECT_TRUE(summary.at("holds").as_bool());
  EXPECT_NEAR(number(summary, "low_limit_w"), 0.7 * number(summary, "limit_w"), 1);
  const std::vector<Reading> readings = readings_of(content_of(scratch.path("out/power.csv")));
  const auto& times = summary.at("judged").as_array();
  ASSERT_EQ(times.size(), 1u + 3 * kills + 1);
  const auto windows = [&](double from_s, double until_s) {
    return windows_of(readings, from_s, until_s, number(summary, "window_s"));
  };
  for (const json::value& time : times) EXPECT_GT(number(time, "windows"), 0) << time;
  const Windows all = windows(number(times.front(), "from_s"), number(times.back(), "until_s"));
  EXPECT_LE(all.most_over_w, 0);
  EXPECT_LE(all.most_over_w, number(summary, "most_over_w") + 1);
  const auto& ramps = summary.at("ramps").as_array();
  ASSERT_EQ(ramps.size(), std::size_t{kills});
  for (const json::value& ramp : ramps) {
    EXPECT_LE(number(ramp, "killed_s"), number(ramp, "until_s") + 1);
    EXPECT_GT(number(ramp, "serves_again_s") - number(ramp, "killed_s"), number(summary, "lease_s"));
    const Windows ramped = windows(number(ramp, "from_s"), number(ramp, "serves_again_s"));
    EXPECT_GT(ramped.count, 90);
    EXPECT_LE(ramped.most_over_w, 0);
  }
  EXPECT_EQ(summary.at("jobs").as_array().size(), 3u);
  for (const json::value& job : summary.at("jobs").as_array()) EXPECT_GE(number(job, "iterations_without_server"), 2);
  // The others' watts, within the lease and a minute.
  const json::value& killed = summary.at("kill");
  EXPECT_LE(number(killed, "used_after_s"), number(summary, "lease_s") + 60);
  EXPECT_GT(number(killed, "others_after_w"), 1.1 * number(killed, "others_before_w"));
  EXPECT_LE(windows(number(killed, "at_s"), readings.back().at_s).most_over_w, 0);
  const std::string page = content_of(scratch.path("out/report.html"));
  EXPECT_THAT(page, HasSubstr("The server&#39;s proof"));
  EXPECT_THAT(page, HasSubstr("in no window of "));
  EXPECT_THAT(page, HasSubstr("random moments of seed " + std::to_string(seed)));
  EXPECT_THAT(content_of(scratch.path("out/server.csv")), HasSubstr("time_s,planned_w,counted_w\n"));
  for (const auto& gpu : gpus_of_story(scratch)) EXPECT_FALSE(gpu->locked());
}

/// The demo's standard error goes to this file.
RunOptions with_errors_in(const std::string& path) {
  RunOptions options;
  options.prepare = [path] {
    if (dup2(open(path.c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO) < 0) _exit(126);
  };
  return options;
}

/// Waits until the demo has printed that, or has ended.
void wait_for_words(const std::string& path, const std::string& words, pid_t demo) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(10);
  while (content_of(path).find(words) == std::string::npos && testing::signal_process(demo, 0) == 0) {
    ASSERT_LT(std::chrono::steady_clock::now(), until) << content_of(path);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

TEST(PowerStoryWithoutClocks, FailsTheVerdict) {
  const ScratchFolder scratch;
  const std::string errors = scratch.path("err");
  std::ofstream(errors).flush();
  RunOptions options = with_errors_in(errors);
  options.meanwhile = [&](pid_t demo) {
    wait_for_words(errors, "no limit yet", demo);
    for (const auto& gpu : gpus_of_story(scratch)) gpu->inject("nvmlDeviceSetGpuLockedClocks", kNotSupported, -1);
  };
  const Outcome outcome = run_perseus(power_story(scratch, 0.25), options);
  ASSERT_EQ(outcome.exit_code, 1) << content_of(errors) << outcome.out;
  const json::value summary = json::parse(outcome.out);
  EXPECT_FALSE(summary.at("holds").as_bool());
  EXPECT_FALSE(summary.at("limits_kept").as_bool());
  EXPECT_GT(number(summary, "most_over_w"), 0.1 * number(summary, "limit_w"));
  EXPECT_TRUE(summary.at("clocks_given_back").as_bool());
  EXPECT_THAT(content_of(scratch.path("out/report.html")), HasSubstr("NOT kept: a window&#39;s mean is "));
}

TEST(PowerStoryInterrupted, EndsInOrder) {
  const ScratchFolder scratch;
  const std::string errors = scratch.path("err");
  std::ofstream(errors).flush();
  RunOptions options = with_errors_in(errors);
  options.meanwhile = [&](pid_t demo) {
    wait_for_words(errors, "all jobs follow plans", demo);
    testing::signal_process(demo, SIGINT);
  };
  EXPECT_EQ(run_perseus(power_story(scratch, 0.25), options).signal, SIGINT);
  EXPECT_THAT(content_of(errors), HasSubstr("no clock is locked, nothing was written"));
  EXPECT_FALSE(fs::exists(scratch.path("out")));
  EXPECT_EQ(gpus_of_story(scratch).size(), 8u);
  for (const auto& gpu : gpus_of_story(scratch)) EXPECT_FALSE(gpu->locked());
}

TEST(PowerStoryOptions, ThoseOfOneJobAreRefused) {
  const ScratchFolder scratch;
  for (const char* option : {"--dp", "--iterations"}) {
    std::vector<std::string> words = power_story(scratch, 0.25);
    words.insert(words.end(), {option, "2"});
    const Outcome outcome = run_perseus(words);
    EXPECT_EQ(outcome.exit_code, 64) << option;
    EXPECT_THAT(outcome.err, HasSubstr("--story power has jobs of its own"));
  }
  const Outcome outcome = run_perseus(power_story(scratch, 0.01));
  EXPECT_EQ(outcome.exit_code, 64);
  EXPECT_THAT(outcome.err, HasSubstr("allowed with --story power: 0.05 or more"));
  EXPECT_FALSE(fs::exists(scratch.path("out")));
}

}  // namespace
}  // namespace perseus::testing
