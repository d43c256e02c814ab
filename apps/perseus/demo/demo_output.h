// Output of `perseus demo`: text on the terminal and a directory of results.
//
// Output:  whole or not at all, not at all after an interrupt (the caller holds an InterruptGuard):
//           DIR/summary.json    the key figures, a fixed set of keys
//           DIR/details.json    all other measurements
//           DIR/report.html     tables, and the iterations as measured and as planned
//           timeline.svg        the first picture of report.html
// Input:   the measurements.
// Errors:  cannot_write.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/report/report.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"
#include "simulation/replay/phase_figures.h"

namespace perseus::cli {

/// Of one iteration of the whole job, as the server predicts it.
struct PredictedIteration {
  double time_s = 0, energy_j = 0, all_max_time_s = 0, all_max_energy_j = 0;
};

struct StragglerMeasurement {
  int replica = 0;
  double power_limit_w = 0;
  double degree = 1;                 ///< as reported to the server
  replay::PhaseFigures all_max;      ///< all computations at maximum clock, with the straggler's power limit
  replay::PhaseFigures no_reaction;  ///< the previous plan, with the power limit
  replay::PhaseFigures reaction;     ///< the others slow down
  replay::PhaseFigures after;        ///< after the straggler has recovered
  int iterations_to_react = 0, iterations_to_recover = 0;  ///< from the notice to the new plan
  std::optional<PredictedIteration> predicted;
};

struct DemoMeasurement {
  std::string title;
  std::vector<report::ReportFact> facts;
  std::vector<report::ReportFact> origin = {};  ///< of the page, see origin.h
  int replicas = 1;
  bool known_profile = false;
  replay::PhaseFigures baseline;  ///< all computations at maximum clock, no client
  replay::PhaseFigures plan;
  PredictedIteration predicted;
  std::optional<double> server_saving_pct;     ///< as the server has measured it; nothing: it claims none
  std::optional<model::Plan> planned;          ///< replica 0's plan, in options of the true profile
  double planned_time_s = 0;                   ///< of the plan, according to the server
  double truth_time_s = 0;                     ///< of that plan by the plan checker on the exact profile
  std::optional<double> at_planned_clock_pct;  ///< of all computations; nullopt: the plan could not be compared
  double client_pct = 0;                       ///< processor time of the clients while the plan ran
  double client_whole_pct = 0;                 ///< from their start on
  double profiling_s = 0, characterizing_s = 0;
  int profiling_iterations = 0;
  std::vector<std::string> job_states;         ///< states of the server's job, in order of observation
  std::vector<replay::ClientFigures> clients;  ///< at the end, per worker
  std::optional<StragglerMeasurement> straggler;
  double took_s = 0;
};

Status check_demo_output(const std::filesystem::path& directory);
/// False: interrupted, nothing was written.
Result<bool> write_demo_output(const std::filesystem::path& directory, const model::ComputationDag& dag,
                               const DemoMeasurement& m);

std::string demo_table(const DemoMeasurement& m);
std::string demo_summary_json(const DemoMeasurement& m);

}  // namespace perseus::cli
