// The pipeline that a command is about: the options that describe it, and how they become a ComputationDag.
//
// Input: files and numbers from the command line. Output: a valid ComputationDag and words for reports. Errors: those
// of the readers, and usage where options contradict each other. Cost: that of reading. Threads: one.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/report/report.h"
#include "planning/model/build_dag.h"
#include "planning/model/computation_dag.h"
#include "server/profiling/expected_frontier.h"
#include "server/profiling/pooled_profile.h"

namespace perseus::cli {

struct PipelineOptions {
  std::string profile;
  std::string dag;
  std::string schedule = "1f1b";
  std::string action_table;
  int microbatches = 12;
  std::optional<int> chunks;
  std::optional<double> blocking_power_w;
  model::TransferLatency transfer_latency;
  bool blocking_transfers = false;
  std::string constants;  ///< instead of the four above and the schedule: a file, see io/formats/pipeline_constants.h
  std::optional<double> split_backward;
  std::optional<double> noise_pct;  ///< of a single sample of the profile; nothing: as the profile shows
};

struct Pipeline {
  model::ComputationDag dag;
  profiling::DrawnTypes drawn;  ///< what a noisy profile leaves possible; none where it counts as exact
  std::string title;
  bool default_blocking = false;          ///< the blocking power is a guess, see planning/model/blocking_power.h
  std::vector<report::ReportFact> facts;  ///< what went in, for reports
};

/// The options above, except `profile`, which a command may want as a positional or as an option.
/// Exactly one of profile and dag is to be given: read_pipeline() says so.
/// `also_schedules`: what --schedule takes besides one name, for its help; empty: nothing.
void add_pipeline_options(CLI::App& subcommand, PipelineOptions& options, const std::string& also_schedules = "");
Result<Pipeline> read_pipeline(const PipelineOptions& options);

/// --schedule best, where a command takes several.
constexpr const char* kBestSchedule = "best";
/// The names of a comma-separated list, empty ones too.
std::vector<std::string> names_in_list(const std::string& text);

/// What the options say besides the schedule, for commands that try several.
struct Measurements {
  PipelineOptions options;                 ///< with what --constants says in their place
  model::Profile profile;                  ///< pooled
  std::vector<model::Profile> draws = {};  ///< what a noisy profile leaves possible; none where it counts as exact
  model::PipelineCosts costs;
  bool default_blocking = false;
  std::vector<report::ReportFact> facts;
};
/// A profile must be given.
Result<Measurements> read_measurements(const PipelineOptions& options);

/// How a profile is pooled before it is planned with: as read_pipeline() does, for who checks that.
CLI::Option* add_noise_option(CLI::App& app, std::optional<double>& noise_pct);
profiling::PooledProfile pooled_by(const model::Profile& profile, std::optional<double> noise_pct);

}  // namespace perseus::cli
