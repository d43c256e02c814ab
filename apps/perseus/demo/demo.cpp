// perseus demo: shows the whole system, live, on simulated GPUs; see docs/demo.md.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "base/count_text.h"
#include "base/standard_streams.h"
#include "command_line/command.h"
#include "command_line/interrupt.h"
#include "command_line/origin.h"
#include "command_line/output_directory.h"
#include "demo/demo_run.h"
#include "demo/power_story.h"
#include "io/formats/number.h"
#include "plan/pipeline.h"
#include "planning/model/make_schedule.h"
#include "planning/model/schedule.h"

namespace perseus::cli {
namespace {

constexpr const char* kSynchronous = "synchronous";
constexpr const char* kUnbounded = "unbounded";
constexpr double kLeastPowerScale = 0.05;

std::string hosts_text(const std::string& host_ahead) {
  if (host_ahead == kSynchronous) return "wait for the end of every computation";
  if (host_ahead == kUnbounded) return "launch up to two iterations ahead of their GPUs";
  return fmt::format("launch up to {} computations ahead of their GPUs", host_ahead);
}

std::string scale_text(double scale) {
  return fmt::format("everything takes {:.3g} times as long as in the profile", scale);
}

/// Empty: allowed; else what is wrong.
std::string check_host_ahead(const std::string& text) {
  if (text == kSynchronous || text == kUnbounded) return {};
  const auto computations = formats::number_in<int>(text);
  if (computations && *computations >= 1 && *computations <= 1024) return {};
  return fmt::format("{}: not allowed; allowed: {}, {}, or a number of computations from 1 to 1024", text, kSynchronous,
                     kUnbounded);
}

std::vector<report::ReportFact> facts_of(const DemoOptions& o, const DemoJob& job) {
  std::vector<report::ReportFact> facts{
      {"GPUs", "simulated"},
      {"profile", profile_file_of(o) + (o.profile.empty() ? ", the project's own, not measured" : "")},
      {"schedule", fmt::format("{}, {}, {}, {}, {}", o.schedule, count_text(job.dag.num_ranks(), "rank"),
                               count_text(job.profile.num_stages(), "stage"), count_text(kMicrobatches, "microbatch"),
                               count_text(o.replicas, "replica"))},
      {"time scale", scale_text(job.time_scale)},
      {"blocking power", fmt::format("{:g} W", job.blocking_power.value())},
      {"hosts", hosts_text(o.host_ahead)}};
  if (job.backward_was_split) facts.push_back({"backward", "split in half: the halves were not measured"});
  return facts;
}

void say_what_is_assumed(const DemoOptions& o, const DemoJob& job) {
  if (job.backward_was_split) {
    note(fmt::format("{} runs the two halves of backward apart: each takes half of it", o.schedule));
  }
  // Estimate: baselines, some thirty iterations of profiling, the plan; with replicas the straggler's phases, half as
  // long.
  const double iterations = 2 * o.iterations + (o.known_profile ? 10 : 40) + (o.replicas > 1 ? 2 * o.iterations : 0);
  if (const double minutes = iterations * job.all_max_time.value() / 60; minutes > 3) {
    note(fmt::format("this takes about {:.0f} minutes; --time-scale makes it shorter", minutes));
  }
}

std::vector<report::ReportFact> facts_of(const DemoOptions& o, const PowerMeasurement& m) {
  return {{"GPUs", "simulated"},
          {"profile", profile_file_of(o) + (o.profile.empty() ? ", the project's own, not measured" : "")},
          {"profile of the server", "given"},
          {"server killed", fmt::format("{} times, at random moments of seed {}", m.server_kills, m.seed)},
          {"time scale", scale_text(*o.time_scale)}};
}

/// What is left of a story once it is over.
struct Told {
  bool written = false;
  int exit_code = 0;
  std::string text;
};

/// Runs a story; however it ends, no process is left and no clock locked. `tell` adds what the run does not know, and
/// writes the files.
template <class Make, class Tell>
Result<int> run_story(const DemoOptions& options, const Make& make, const Tell& tell) {
  std::optional<Error> failed;
  bool is_tidy = false;
  Told told;
  {
    const InterruptGuard guard;
    const auto scratch = DemoScratch::create(options.scratch);
    if (!scratch) return scratch.error();
    const auto run = make(*scratch);
    auto measured = run->run();
    if (!measured) failed = measured.error();
    const Status tidy = run->tidy();
    is_tidy = tidy.ok();
    if (!tidy && (!failed || InterruptGuard::interrupted())) failed = tidy.error();
    if (!failed && !InterruptGuard::interrupted()) {
      Result<Told> all = tell(*measured, is_tidy);
      if (!all) failed = all.error();
      if (all) told = *std::move(all);
    }
    if (told.written) print(told.text);
    if (told.written && options.server_port) run->keep_server();
    run->stop_server();
    if (told.written && options.server_port) return told.exit_code;  // Ctrl-C is the regular end here
  }
  if (InterruptGuard::interrupted()) {
    write_error(fmt::format("perseus: interrupted; the training has ended, {}, {}\n",
                            is_tidy ? "no clock is locked" : failed->message,
                            told.written ? "all was written" : "nothing was written"));
  }
  die_if_interrupted();
  if (failed) return *failed;
  return told.exit_code;
}

Result<int> run_demo(const DemoOptions& options, bool as_json) {
  const auto job = demo_job(options);
  if (!job) return job.error();
  const std::vector<report::ReportFact> origin = origin_facts();
  if (const Status writable = check_demo_output(options.out); !writable) return writable.error();
  say_what_is_assumed(options, *job);
  return run_story(
      options, [&](const DemoScratch& scratch) { return demo_run(options, *job, scratch); },
      [&](DemoMeasurement& m, bool /*is_tidy*/) -> Result<Told> {
        m.title = fmt::format("{} x {} simulated GPUs", options.replicas, job->dag.num_ranks());
        m.facts = facts_of(options, *job);
        m.origin = origin;
        m.replicas = options.replicas;
        m.known_profile = options.known_profile;
        const Result<bool> written = write_demo_output(options.out, job->dag, m);
        if (!written) return written.error();
        return Told{*written, 0,
                    as_json ? demo_summary_json(m) : demo_table(m) + written_text(options.out, "report.html")};
      });
}

/// Exit code 0 if the verdict holds, 1 if it does not; both with all results.
Result<int> run_power_demo(const DemoOptions& options, bool as_json) {
  const std::vector<report::ReportFact> origin = origin_facts();
  if (const Status writable = check_power_output(options.out); !writable) return writable.error();
  return run_story(
      options, [&](const DemoScratch& scratch) { return power_story(options, scratch); },
      [&](PowerMeasurement& m, bool is_tidy) -> Result<Told> {
        m.clocks_given_back = is_tidy;
        m.facts = facts_of(options, m);
        m.origin = origin;
        const Result<bool> written = write_power_output(options.out, m);
        if (!written) return written.error();
        return Told{*written, story_holds(m) ? 0 : 1,
                    as_json ? power_summary_json(m) : power_text(m) + written_text(options.out, "report.html")};
      });
}

void add_training_options(CLI::App& demo, DemoOptions& options) {
  const OptionGroup group(demo, "The training");
  add_value(demo, "--profile PROFILE.csv", options.profile,
            "Profile of the simulated GPUs: CSV with the columns stage,instruction,frequency,time,energy "
            "(default: a built-in sample)");
  add_default(demo, "--dp D", options.replicas, "Data-parallel replicas; with one, the demo has no straggler",
              whole_number_within(1, 32));
  add_default(demo, "--schedule NAME", options.schedule,
              fmt::format("Pipeline schedule: one of {}", fmt::join(model::schedule_names(), ", ")))
      ->transform(schedule_names())
      ->check(CLI::IsMember(model::schedule_names()).description(""));
  add_value(demo, "--time-scale X", options.time_scale,
            "Ratio of simulated times to the profile's times (default: 0.5, or less, so that an "
            "iteration of the story 'saving' takes about 0.67 s)",
            number_within(0.01, 100, ""));
}

void add_run_options(CLI::App& demo, DemoOptions& options) {
  const OptionGroup group(demo, "The run");
  add_default(demo, "--iterations N", options.iterations, "Iterations to measure in each phase",
              whole_number_within(2, 10000));
  demo.add_flag(
      "--known-profile", options.known_profile,
      "Give the server the profile, as the story 'power' does (default: it is measured while the job trains)");
  add_value(demo, "--server-port PORT", options.server_port,
            "Keep the server and its dashboard running at this port until Ctrl-C; 0: a free one",
            whole_number_within(0, 65535));
  add_default(demo, "--story NAME", options.story,
              "saving: one job, and its energy; power: three jobs under the watt limit of a site that falls by 30 "
              "%, the server killed during a ramp, then a job killed",
              CLI::IsMember({"saving", "power"}).description(""));
}

/// For tests and measurements; not in --help.
void add_hidden_options(CLI::App& demo, DemoOptions& options) {
  const OptionGroup group(demo, "");
  demo.add_option("--host-ahead", options.host_ahead)->check(CLI::Validator(check_host_ahead, ""));
  add_transfer_latency(demo, "",
                       [&options](const model::TransferLatency& latency) { options.transfer_latency = latency; });
  demo.add_option("--switch-latency", options.switch_latency_ms)->check(number_within(0, 1000, "ms"));
  demo.add_option("--scratch", options.scratch);
  demo.add_option("--server-kills", options.server_kills)->check(whole_number_within(1, 100));
  demo.add_option("--seed", options.seed);
}

/// The story 'power' has its own jobs, and a server whose leases are real seconds.
void refuse_options_of_one_job(const CLI::App& demo, const DemoOptions& options) {
  if (*options.time_scale < kLeastPowerScale) {
    throw CLI::ValidationError("--time-scale", fmt::format("{:g}; allowed with --story power: {:g} or more",
                                                           *options.time_scale, kLeastPowerScale));
  }
  for (const char* option : {"--dp", "--schedule", "--iterations"}) {
    if (demo.count(option) > 0) {
      throw CLI::ValidationError(option, "--story power has jobs of its own; allowed: without this option");
    }
  }
}

}  // namespace

void add_demo(CLI::App& app, Command& command) {
  auto* demo = app.add_subcommand(
      "demo", "Train on simulated GPUs with profiling, planning and a straggler, and measure the saving");
  auto options = std::make_shared<DemoOptions>();
  add_training_options(*demo, *options);
  add_run_options(*demo, *options);
  add_hidden_options(*demo, *options);
  add_default(*demo, "--out DIR", options->out,
              "Write the results to this directory, whole or not at all: report.html, summary.json, and of the "
              "story 'saving' details.json and timeline.svg, of 'power' power.csv and server.csv");
  add_json_flag(*demo, command);
  demo->footer(help_footer(kServiceErrors,
                           "  perseus demo\n"
                           "  perseus demo --server-port 7787\n"
                           "  perseus demo --story power\n"
                           "  perseus demo --profile gpt3.csv --schedule gpipe --dp 3\n") +
               "   1  the verdict of --story power does not hold\n");
  demo->callback([demo, options, &command] {
    const bool is_power = options->story == "power";
    if (is_power) {
      options->known_profile = true;
      if (!options->time_scale) options->time_scale = kMostDefaultScale;
      refuse_options_of_one_job(*demo, *options);
    }
    command.run = [options, &command, is_power] {
      return is_power ? run_power_demo(*options, command.json) : run_demo(*options, command.json);
    };
  });
}

}  // namespace perseus::cli
