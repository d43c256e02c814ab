// Runs `perseus demo --story power`: three jobs on simulated GPUs under the limit of a site that falls by 30 % and
// comes back, and the server killed while it is low.
//
// Problem: show that a site keeps its limit whatever happens to the server, judged by a meter that asks neither the
//          server nor the clients.
// Method:  see docs/demo.md, "The power story".
// Input:   options, a scratch folder.
// Output:  the meter's readings, events, and the verdict.
// Errors:  as DemoRun; but the end of the server that the story kills is none.
// Cost:    some ninety seconds.
// Threads: one.
#pragma once

#include <boost/json/value.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "demo_job.h"
#include "demo_scratch.h"
#include "io/report/report.h"
#include "simulation/replay/window_verdict.h"

namespace perseus::cli {

/// Times in seconds since the meter's first reading.
struct StoryEvent {
  double at_s = 0;
  std::string what;
};

struct StoryLimit {
  double from_s = 0;
  double limit_w = 0;
};

/// A limit's fall, until the jobs keep it.
struct StoryFall {
  std::string name;
  double at_s = 0;
  double acted_s = 0;  ///< all ranks had confirmed plans under the limit, and had ended the iteration of that moment
  bool in_time = false;
};

/// What the server said of the site.
struct ServerReading {
  double at_s = 0, planned_w = 0, counted_w = 0;
};

struct StoryJobFigures {
  std::string shape, description;
  int gpus = 0, iterations = 0, iterations_without_server = 0;
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
  std::vector<StoryLimit> limits;
  std::vector<StoryFall> falls;
  std::vector<replay::JudgedLimit> judged;
  std::vector<replay::WindowVerdict> verdicts;
  double killed_s = 0, serves_again_s = 0;
  bool rose_again = false;
  std::vector<StoryJobFigures> jobs;
  boost::json::value proof;
  bool clocks_given_back = false;
  double took_s = 0;
};

// The verdict, part by part.
bool limits_kept(const PowerMeasurement& m);
bool acted_in_time(const PowerMeasurement& m);
bool trained_on(const PowerMeasurement& m);
bool story_holds(const PowerMeasurement& m);
/// What the server keeps so that the meter's means keep the limit: less the swing, and less 1 %.
double limit_of_server_w(const PowerMeasurement& m, double limit_w);
/// The most by which a window's mean exceeds its limit; negative: what was left.
double most_over_w(const PowerMeasurement& m);

class PowerStory {
 public:
  PowerStory(const DemoOptions& options, const DemoScratch& scratch);
  PowerStory(const PowerStory&) = delete;
  PowerStory& operator=(const PowerStory&) = delete;
  ~PowerStory();

  Result<PowerMeasurement> run();
  /// As DemoRun's.
  Status tidy();
  void keep_server();
  void stop_server();

 private:
  class Steps;
  std::unique_ptr<Steps> steps_;
};

}  // namespace perseus::cli
