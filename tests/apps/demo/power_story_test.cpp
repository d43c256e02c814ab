// `perseus demo --story power`: its verdict is that of its power.csv, and it fails where GPUs ignore their clocks.
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
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "simulation/simulated_gpu/simulated_gpu.h"
#include "tests/apps/perseus/program.h"

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
  double at_s, energy_j;
};

/// The first two columns of power.csv.
std::vector<Reading> readings_of(const std::string& csv) {
  std::vector<Reading> readings;
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "time_s,energy_j,power_w,window_w,limit_w,judged");
  while (std::getline(lines, line)) {
    const std::size_t comma = line.find(',');
    readings.push_back({std::stod(line), std::stod(line.substr(comma + 1))});
  }
  return readings;
}

/// The greatest mean of any window within that time, from the energies alone.
double greatest_mean_w(const std::vector<Reading>& readings, double from_s, double until_s, double window_s) {
  double greatest_w = 0;
  for (std::size_t a = 0, b = 0; a < readings.size(); ++a) {
    while (b < readings.size() && readings[b].at_s < readings[a].at_s + window_s - 0.01) ++b;
    if (readings[a].at_s < from_s || b == readings.size() || readings[b].at_s > until_s) continue;
    const double mean_w = (readings[b].energy_j - readings[a].energy_j) / (readings[b].at_s - readings[a].at_s);
    greatest_w = std::max(greatest_w, mean_w);
  }
  return greatest_w;
}

double number(const json::value& value, const char* key) { return value.at(key).to_number<double>(); }

TEST(PowerStory, TheLimitIsKeptWhileTheServerIsDead) {
  const ScratchFolder scratch;
  const Outcome outcome = run_perseus(power_story(scratch, 0.25));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  const json::value summary = json::parse(outcome.out);
  EXPECT_EQ(summary, json::parse(content_of(scratch.path("out/summary.json"))));
  EXPECT_TRUE(summary.at("holds").as_bool());
  EXPECT_NEAR(number(summary, "low_limit_w"), 0.7 * number(summary, "limit_w"), 1);
  const std::vector<Reading> readings = readings_of(content_of(scratch.path("out/power.csv")));
  const auto& limits = summary.at("limits").as_array();
  ASSERT_EQ(limits.size(), 3u);
  for (const json::value& limit : limits) {
    // The file's times are rounded to 0.1 ms, so a reading at the begin or end may count or not.
    const auto greatest_w = [&](double margin_s) {
      return greatest_mean_w(readings, number(limit, "from_s") - margin_s, number(limit, "until_s") + margin_s,
                             number(summary, "window_s"));
    };
    EXPECT_GT(greatest_w(-1e-3), 0.5 * number(limit, "limit_w"));
    EXPECT_LE(greatest_w(-1e-3), number(limit, "limit_w"));
    EXPECT_GE(number(limit, "greatest_w"), greatest_w(-1e-3) - 0.1);
    EXPECT_LE(number(limit, "greatest_w"), greatest_w(1e-3) + 0.1);
  }
  // The low limit is judged while the server is dead, for longer than a plan lease.
  EXPECT_LT(number(limits[1], "from_s"), number(summary, "killed_s"));
  EXPECT_GT(number(limits[1], "until_s"), number(summary, "serves_again_s"));
  EXPECT_GT(number(summary, "serves_again_s") - number(summary, "killed_s"), number(summary, "lease_s"));
  EXPECT_EQ(summary.at("jobs").as_array().size(), 3u);
  for (const json::value& job : summary.at("jobs").as_array()) EXPECT_GE(number(job, "iterations_without_server"), 2);
  const std::string page = content_of(scratch.path("out/report.html"));
  EXPECT_THAT(page, HasSubstr("The server&#39;s proof"));
  EXPECT_THAT(page, HasSubstr("in no window of "));
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
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(3);
  while (content_of(path).find(words) == std::string::npos && kill(demo, 0) == 0) {
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
    wait_for_words(errors, "the limit has acted", demo);
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
    kill(demo, SIGINT);
  };
  EXPECT_EQ(run_perseus(power_story(scratch, 0.25), options).signal, SIGINT);
  EXPECT_THAT(content_of(errors), HasSubstr("no clock is locked, nothing was written"));
  EXPECT_FALSE(fs::exists(scratch.path("out")));
  EXPECT_EQ(gpus_of_story(scratch).size(), 8u);
  for (const auto& gpu : gpus_of_story(scratch)) EXPECT_FALSE(gpu->locked());
}

TEST(PowerStoryOptions, ThoseOfOneJobAreRefused) {
  const ScratchFolder scratch;
  for (const char* option : {"--dp", "--stages", "-m", "--iterations"}) {
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
