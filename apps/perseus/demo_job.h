// What `perseus demo` trains: the pipeline, the simulated GPUs' physics, and what can be said of them beforehand.
//
// Problem: a demo must be refused with one word before anything starts, or run to its end. Input: the command line's
// options. Output: the profile that the simulated GPUs follow (as many stages as wanted, everything stretched by the
// time scale), its computation DAG, and its iteration at maximum clock. Errors: those of reading the profile, of the
// schedule (instructions that the profile lacks and that cannot be derived) and of the shape; usage: more workers than
// most_workers. Cost: O(DAG). Threads: one.
#pragma once

#include <boost/json/array.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"
#include "planning/model/profile.h"

namespace perseus::cli {

struct DemoOptions {
  std::string profile, schedule = "1f1b";
  int microbatches = 8, replicas = 2, iterations = 10, server_port = 0;
  std::optional<int> stages, chunks;
  std::optional<double> blocking_power_w, split_backward, limit_s, switch_latency_ms;
  double time_scale = 0.5, straggler_slowdown = 1.15;
  bool known_profile = false, keep = false;
  model::TransferLatency transfer_latency;  ///< between the ranks; the client is not told
  bool blocking_transfers = false;
  std::string slowdown = "0%";           ///< tolerated by the server
  std::string host_ahead = "unbounded";  ///< or "synchronous", or a number of computations
  std::string out = "perseus-demo", scratch, helper;
};

struct DemoJob {
  model::Profile profile;  ///< true for the simulated GPUs
  int chunks = 1;
  Watts blocking_power;
  bool backward_was_split = false;  ///< the sample's, by a share that nobody measured
  model::ComputationDag dag;
  Seconds all_max_time;  ///< of an iteration
};

inline constexpr int most_workers = 128;  ///< processes, and two helpers each

Result<DemoJob> demo_job(const DemoOptions& options);
/// What the profile is called; the sample unless one was given.
std::string profile_file_of(const DemoOptions& options);

/// The power limit that makes everything at maximum clock about that many times slower.
double power_limit_for(const model::ComputationDag& dag, double slowdown);
/// Options of that DAG by a rank's clocks, [["forward", 1410], ...]; false: they fit no option.
bool apply_clocks(const model::ComputationDag& dag, int rank, const boost::json::array& clocks, model::Plan& plan);

}  // namespace perseus::cli
