// The job of `perseus demo`: the pipeline, the simulated GPUs' physics, and the figures known before the start.
//
// Problem: a demo must either fail with one message before anything starts, or run to its end.
// Input:   the command line's options.
// Output:  the profile that the simulated GPUs follow (the requested number of stages, all times multiplied by the
//          time scale), its computation DAG, and its iteration at maximum clock.
// Errors:  those of reading the profile, of the schedule (instructions that the profile lacks and that cannot be
//          derived) and of the shape; usage: more workers than kMostWorkers.
#pragma once

#include <boost/json/array.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"
#include "planning/model/profile.h"

namespace perseus::cli {

/// How many times slower the straggler is; the demo sets the nearest power limit.
inline constexpr double kStragglerSlowdown = 1.15;

inline constexpr int kMicrobatches = 8;  ///< per iteration and replica

/// Without --time-scale: the largest, and the longest iteration at maximum clock of a job with a smaller one.
inline constexpr double kMostDefaultScale = 0.5;
inline constexpr Seconds kDefaultIteration = Seconds(0.67);

struct DemoOptions {
  std::string profile, schedule = "1f1b";
  int replicas = 2, iterations = 10;
  std::optional<int> stages;  ///< of the profile's, evenly apart; the story 'power' alone sets it
  std::optional<int> server_port;
  std::optional<double> switch_latency_ms, time_scale;
  bool known_profile = false;
  model::TransferLatency transfer_latency;  ///< between the ranks; the client does not know it
  std::string host_ahead = "unbounded";     ///< or "synchronous", or a number of computations
  std::string out = "perseus-demo", scratch;
  std::string story = "saving";  ///< or "power"
  int server_kills = 1;          ///< of the story 'power': ramps, each with an end of the server
  std::optional<unsigned> seed;  ///< of their moments
  std::string job_name;          ///< empty: named for the profile
  int first_gpu = 0;             ///< number of the job's first GPU among those of all jobs of the demo
};

struct DemoJob {
  model::Profile profile;  ///< exact for the simulated GPUs
  double time_scale = 1;   ///< ratio of its times to the given profile's
  int chunks = 1;
  Watts blocking_power;
  bool backward_was_split = false;  ///< the sample's, by an assumed share that was not measured
  model::ComputationDag dag;
  Seconds all_max_time;  ///< of an iteration
};

inline constexpr int kMostWorkers = 128;  ///< processes, and two helpers each

Result<DemoJob> demo_job(const DemoOptions& options);
/// data/sample_profile.csv, part of the program so that `perseus demo` needs no other file.
std::string_view sample_profile_text();
/// Name of the profile; the sample unless the options give one.
std::string profile_file_of(const DemoOptions& options);

/// The power limit that makes the iteration at maximum clock about that many times slower.
double power_limit_for(const model::ComputationDag& dag, double slowdown);
/// Options of that DAG by a rank's clocks, [["forward", 1410], ...]; false: they match no option.
bool apply_clocks(const model::ComputationDag& dag, int rank, const boost::json::array& clocks, model::Plan& plan);

}  // namespace perseus::cli
