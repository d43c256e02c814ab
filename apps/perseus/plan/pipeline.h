// The pipeline of a command: the options that describe it, and their conversion to a ComputationDag.
//
// Input:   files and numbers from the command line.
// Output:  a valid ComputationDag and text for reports.
// Errors:  those of the readers, and usage where options contradict each other.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/report/report.h"
#include "plan/trace_input.h"
#include "planning/model/build_dag.h"
#include "planning/model/computation_dag.h"
#include "planning/model/schedule.h"
#include "planning/model/transfer_latency.h"
#include "planning/planner/robust_frontier.h"
#include "server/profiling/expected_frontier.h"
#include "server/profiling/pooled_profile.h"

namespace perseus::cli {

struct TracedPipeline {
  model::Profile profile;
  model::Schedule schedule;
  std::string assumption;
  std::string origin;  ///< the timeline, for reports; empty: reported elsewhere, with the assumption
};

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
  bool serial_transfers = false;
  std::string constants;  ///< instead of the five above and the schedule: a file, see io/formats/pipeline_constants.h
  /// Of `constants`, once they are read: links that explain the calibrated runs too; none where transfers queue.
  std::optional<std::vector<model::OtherLinks>> other_links = {};
  std::optional<double> split_backward;
  std::optional<double> noise_pct;  ///< of a single sample of the profile; nullopt: estimated from the profile
  /// Of the GPU whose other clocks a model adds to a profile of one clock; empty: none. For advice only.
  std::string modeled_gpu = {};
  TraceInput trace = {};  ///< instead of the schedule and the transfers; `profile` is scaled to its times
  /// Of `trace`, once it is read; `profile` only names it then.
  std::optional<TracedPipeline> traced = {};
};

struct Pipeline {
  model::ComputationDag dag;
  planner::LatencySets other_links;  ///< that --constants leave possible, see other_latencies()
  profiling::DrawnTypes drawn;  ///< alternatives that a noisy profile leaves possible; none where the profile counts
                                ///< as exact
  std::string title;
  bool default_blocking = false;  ///< the blocking power is a default, see planning/model/profile.h
  bool modeled = false;           ///< most of the profile was not measured, see server/profiling/modeled_profile.h
  std::vector<report::ReportFact> facts;        ///< the inputs, for reports
  std::vector<report::ReportFact> origin = {};  ///< of files, see origin.h
};

/// Group of these options in --help.
constexpr const char* kPipelineGroup = "The pipeline";
/// The options above, except `profile`, which a command may declare as a positional or as an option. Exactly one of
/// profile and dag is required: read_pipeline() checks that. `also_schedules`: further values of --schedule besides
/// one name, for its help; empty: none.
void add_pipeline_options(CLI::App& subcommand, PipelineOptions& options, const std::string& also_schedules = "");
Result<Pipeline> read_pipeline(const PipelineOptions& options);
/// The options with the values from --constants and --trace in their place. Files are read once: they may be pipes.
Result<PipelineOptions> with_files(PipelineOptions options);
/// The latencies of the DAG's dependencies with each set of other links of options with_files().
Result<planner::LatencySets> other_latencies(const PipelineOptions& options, const model::ComputationDag& dag);
/// Prints the blocking power that is assumed because no --blocking-power was given.
void note_assumed_blocking(Watts assumed);
/// Facts and origin, for files.
std::vector<report::ReportFact> described_inputs(const Pipeline& pipeline);

/// --schedule best, for commands that accept several.
constexpr const char* kBestSchedule = "best";

/// The content of the options besides the schedule, for commands that try several.
struct Measurements {
  PipelineOptions options;                 ///< with the values from --constants and --trace in their place
  model::Profile profile;                  ///< pooled
  std::vector<model::Profile> draws = {};  ///< alternatives that a noisy profile leaves possible; none where the
                                           ///< profile counts as exact
  model::PipelineCosts costs;
  bool default_blocking = false;
  bool modeled = false;
  std::vector<report::ReportFact> facts;
};
/// Requires a profile.
Result<Measurements> read_measurements(const PipelineOptions& options);

/// Adds the option for pooling a profile before planning, as read_pipeline() does it, for commands that check that.
CLI::Option* add_noise_option(CLI::App& app, std::optional<double>& noise_pct);
profiling::PooledProfile pooled_by(const model::Profile& profile, std::optional<double> noise_pct);
/// The fact that names the noise of a pooled profile; nothing if pooling changed nothing.
constexpr const char* kNoiseKey = "noise of a sample";
std::optional<report::ReportFact> noise_fact(const profiling::PooledProfile& pooled);
/// Ends the fact "blocking power" where no option gave it.
constexpr const char* kGuessed = " (a guess)";

/// Checks that a list of transfer latencies has as many entries as the schedules (at least one of them) have
/// boundaries. The error is of the kind of `given_in`, whose message its text begins with.
Status check_transfer_count(const model::TransferLatency& latency, const std::vector<model::Schedule>& schedules,
                            const Error& given_in);

/// Where the latencies of a pipeline were given: the option, or the file of --constants.
Error latency_origin(const PipelineOptions& options);

}  // namespace perseus::cli
