// Runs `perseus demo --story power`: three jobs on simulated GPUs under the limit of a site that falls by 30 %, at once
// and as ramps; the server killed at random moments of the ramps; then one of the jobs killed under the low limit.
//
// Problem: show that a site keeps its limit whatever happens to the server, and that the watts of a dead job are used,
//          judged by a meter that asks neither the server nor the clients.
// Method:  see docs/demo.md, "The power story".
// Input:   options, a scratch folder.
// Output:  the meter's readings, events, and the verdict.
// Errors:  as DemoRun; but the end of the server that the story kills is none.
// Cost:    some two minutes, and half a minute for each further end of the server.
#pragma once

#include <boost/json/value.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "demo/demo_job.h"
#include "demo/demo_run.h"
#include "io/report/report.h"
#include "simulation/replay/window_verdict.h"

namespace perseus::cli {

/// Times in seconds since the meter's first reading.
struct StoryEvent {
  double at_s = 0;
  std::string what;
};

/// A limit's fall, until the jobs keep it.
struct StoryFall {
  double at_s = 0;
  double acted_s = 0;  ///< all ranks had confirmed plans under the limit, and had ended the iteration of that moment
  bool in_time = false;
};

/// A limit that falls as a ramp, and the server's end meanwhile.
struct StoryRamp {
  double from_s = 0, until_s = 0, killed_s = 0, serves_again_s = 0;
};

/// The end of one of the jobs: all its processes at once, its helpers too.
struct StoryKill {
  std::string job;
  double at_s = 0;
  double before_w = 0, after_w = 0;  ///< what the other jobs drew, by the meter
  double unlimited_w = 0;            ///< what they drew without a limit
  double used_s = 0, at_most_s = 0;  ///< until they had the watts, 0: never; allowed
  [[nodiscard]] bool in_time() const { return used_s > 0 && used_s <= at_most_s; }
};

/// What the server said of the site.
struct ServerReading {
  double at_s = 0, planned_w = 0, counted_w = 0;
};

struct StoryJobFigures {
  std::string shape, description;
  int gpus = 0, iterations = 0;
  int iterations_without_server = 0;                   ///< the least of all ends of the server
  double high_s = 0, low_s = 0, without_server_s = 0;  ///< mean iteration times
};

struct PowerMeasurement {
  std::vector<report::ReportFact> facts, origin;
  double window_s = 0, interval_s = 0, lease_s = 0, reaction_s = 0;
  double all_max_w = 0, drawn_w = 0, limit_w = 0, low_limit_w = 0;
  double swing_w = 0;  ///< of means over the window, see swing_reserve()
  std::vector<replay::EnergyReading> readings;
  std::vector<ServerReading> server;
  std::vector<StoryEvent> events;
  std::vector<replay::LimitPoint> limits;
  std::optional<StoryFall> fall;
  std::vector<StoryRamp> ramps;
  std::optional<StoryKill> kill;
  std::vector<replay::JudgedTime> judged;
  std::vector<replay::WindowVerdict> verdicts;
  unsigned seed = 0;  ///< of the moments at which the server is killed
  int server_kills = 0;
  int returns = 0;  ///< of the limit, after which the jobs had their watts again
  std::vector<StoryJobFigures> jobs;
  boost::json::value proof;
  bool clocks_given_back = false;
  double took_s = 0;
};

// The verdict, part by part.
bool limits_kept(const PowerMeasurement& m);
bool acted_in_time(const PowerMeasurement& m);
bool trained_on(const PowerMeasurement& m);
bool rose_again(const PowerMeasurement& m);
bool watts_used(const PowerMeasurement& m);
bool story_holds(const PowerMeasurement& m);
/// What the server keeps so that the meter's means keep the limit: less the swing, and less 1 %.
double limit_of_server_w(const PowerMeasurement& m, double limit_w);
/// The most by which a window's mean exceeds its limit; negative: what was left.
double most_over_w(const PowerMeasurement& m);

// Its results: summary.json with the verdict and its figures, a fixed set of keys; report.html with the trace of the
// meter, the verdict, events, jobs and the server's proof; power.csv, the meter's energy and power every 0.1 s, the
// mean over the window and the limit; server.csv, what the server planned and counted.
Status check_power_output(const std::filesystem::path& directory);
/// Whole or not at all; false: interrupted, nothing was written. The caller holds an InterruptGuard.
Result<bool> write_power_output(const std::filesystem::path& directory, const PowerMeasurement& m);
std::string power_text(const PowerMeasurement& m);
std::string power_summary_json(const PowerMeasurement& m);

/// Both must outlive it.
std::unique_ptr<Story<PowerMeasurement>> power_story(const DemoOptions& options, const DemoScratch& scratch);

}  // namespace perseus::cli
