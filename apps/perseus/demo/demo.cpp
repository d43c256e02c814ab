// perseus demo: shows the whole system, live, on simulated GPUs; see docs/demo.md.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "command_line/command.h"
#include "command_line/interrupt.h"
#include "command_line/origin.h"
#include "demo/demo_run.h"
#include "demo/power_story.h"
#include "demo/power_story_output.h"
#include "io/formats/number.h"
#include "plan/pipeline.h"
#include "planning/model/make_schedule.h"
#include "planning/model/schedule.h"

namespace perseus::cli {
namespace {

/// Groups of options in --help.
constexpr const char* kTraining = "The training";
constexpr const char* kRun = "The run";

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
      {"schedule", fmt::format("{}, {} ranks, {} stages, {} microbatches, {} replicas", o.schedule, job.dag.num_ranks(),
                               job.profile.num_stages(), o.microbatches, o.replicas)},
      {"time scale", scale_text(job.time_scale)},
      {"blocking power", fmt::format("{:g} W", job.blocking_power.value())},
      {"hosts", hosts_text(o.host_ahead)}};
  if (job.backward_was_split) facts.push_back({"backward", "split in half: the halves were not measured"});
  return facts;
}

void say_what_is_assumed(const DemoOptions& o, const DemoJob& job) {
  if (!o.profile.empty() && !o.blocking_power_w) note_assumed_blocking(job.blocking_power);
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
          {"profile of the server", o.known_profile ? "given" : "measured in vivo"},
          {"server killed", fmt::format("{} times, at random moments of seed {}", m.server_kills, m.seed)},
          {"time scale", scale_text(*o.time_scale)}};
}

/// Runs a story; however it ends, no process is left and no clock locked. `complete` adds what the run does not know
/// and returns the exit code.
template <class Make, class Complete, class Write, class Text>
Result<int> run_story(const DemoOptions& options, const Make& make, const Complete& complete, const Write& write,
                      const Text& text) {
  std::optional<Error> failed;
  bool is_tidy = false, written = false;
  int exit_code = 0;
  {
    const InterruptGuard guard;
    const auto scratch = DemoScratch::create(options.scratch);
    if (!scratch) return scratch.error();
    auto run = make(*scratch);
    auto measured = run.run();
    if (!measured) failed = measured.error();
    const Status tidy = run.tidy();
    is_tidy = tidy.ok();
    if (!tidy && (!failed || InterruptGuard::interrupted())) failed = tidy.error();
    if (!failed && !InterruptGuard::interrupted()) {
      exit_code = complete(*measured, is_tidy);
      const Result<bool> whole = write(*measured);
      if (!whole) failed = whole.error();
      written = whole && *whole;
    }
    if (written) print(text(*measured));
    if (written && options.server_port) run.keep_server();
    run.stop_server();
    if (written && options.server_port) return exit_code;  // Ctrl-C is the regular end here
  }
  if (InterruptGuard::interrupted()) {
    fmt::print(stderr, "perseus: interrupted; the training has ended, {}, {}\n",
               is_tidy ? "no clock is locked" : failed->message, written ? "all was written" : "nothing was written");
  }
  die_if_interrupted();
  if (failed) return *failed;
  return exit_code;
}

std::string written_text(const DemoOptions& options) {
  return fmt::format("written to {0}; to look at: {0}/report.html\n", options.out);
}

Result<int> run_demo(const DemoOptions& options, bool as_json) {
  const auto job = demo_job(options);
  if (!job) return job.error();
  const std::vector<report::ReportFact> origin = origin_facts();
  if (const Status writable = check_demo_output(options.out); !writable) return writable.error();
  say_what_is_assumed(options, *job);
  return run_story(
      options, [&](const DemoScratch& scratch) { return DemoRun(options, *job, scratch); },
      [&](DemoMeasurement& m, bool /*is_tidy*/) {
        m.title = fmt::format("{} x {} simulated GPUs", options.replicas, job->dag.num_ranks());
        m.facts = facts_of(options, *job);
        m.origin = origin;
        m.replicas = options.replicas;
        m.known_profile = options.known_profile;
        return 0;
      },
      [&](const DemoMeasurement& m) { return write_demo_output(options.out, job->dag, m); },
      [&](const DemoMeasurement& m) { return as_json ? demo_summary_json(m) : demo_table(m) + written_text(options); });
}

/// Exit code 0 if the verdict holds, 1 if it does not; both with all results.
Result<int> run_power_demo(const DemoOptions& options, bool as_json) {
  const std::vector<report::ReportFact> origin = origin_facts();
  if (const Status writable = check_power_output(options.out); !writable) return writable.error();
  return run_story(
      options, [&](const DemoScratch& scratch) { return PowerStory(options, scratch); },
      [&](PowerMeasurement& m, bool is_tidy) {
        m.clocks_given_back = is_tidy;
        m.facts = facts_of(options, m);
        m.origin = origin;
        return story_holds(m) ? 0 : 1;
      },
      [&](const PowerMeasurement& m) { return write_power_output(options.out, m); },
      [&](const PowerMeasurement& m) {
        return as_json ? power_summary_json(m) : power_text(m) + written_text(options);
      });
}

void add_training_options(CLI::App& demo, DemoOptions& options) {
  demo.add_option("--profile", options.profile,
                  "Profile of the simulated GPUs: CSV with the columns stage,instruction,frequency,time,energy "
                  "(default: a built-in sample)")
      ->type_name("PROFILE.csv")
      ->group(kTraining);
  demo.add_option(
          "--blocking-power", options.blocking_power_w,
          "Power of one waiting accelerator, in watts (default: 20 % of the profile's peak power; 90 W for the sample)")
      ->check(number_within(0.001, 1e6, "W"))
      ->type_name("W")
      ->group(kTraining);
  demo.add_option("--stages", options.stages, "Stages of the pipeline (default: those of the profile)")
      ->check(whole_number_within(1, 64))
      ->type_name("S")
      ->group(kTraining);
  demo.add_option("-m,--microbatches", options.microbatches, "Microbatches per iteration")
      ->capture_default_str()
      ->check(whole_number_within(1, 1024))
      ->type_name("M")
      ->group(kTraining);
  demo.add_option("--dp", options.replicas, "Data-parallel replicas; with one, the demo has no straggler")
      ->capture_default_str()
      ->check(whole_number_within(1, 32))
      ->type_name("D")
      ->group(kTraining);
  demo.add_option("--schedule", options.schedule,
                  fmt::format("Pipeline schedule: one of {}", fmt::join(model::schedule_names(), ", ")))
      ->capture_default_str()
      ->transform(schedule_names())
      ->check(CLI::IsMember(model::schedule_names()).description(""))
      ->type_name("NAME")
      ->group(kTraining);
  demo.add_option("--time-scale", options.time_scale,
                  "Ratio of simulated times to the profile's times (default: 0.5, or less, so that an "
                  "iteration of the story 'saving' takes about 0.67 s)")
      ->check(number_within(0.01, 100, ""))
      ->type_name("X")
      ->group(kTraining);
}

void add_host_options(CLI::App& demo, DemoOptions& options) {
  demo.add_option("--host-ahead", options.host_ahead,
                  "Run-ahead of the hosts: synchronous, a number of computations, or unbounded")
      ->capture_default_str()
      ->check(CLI::Validator(check_host_ahead, ""))
      ->type_name("N")
      ->group(kTraining);
  add_transfer_latency(demo,
                       "Latency of transfers between ranks, in seconds, as in 'perseus plan' (default: 0). With "
                       "--known-profile the server receives it; otherwise the ranks measure it",
                       [&options](const model::TransferLatency& latency) { options.transfer_latency = latency; })
      ->group(kTraining);
  demo.add_option(
          "--switch-latency", options.switch_latency_ms,
          "Time until a clock change takes effect, in milliseconds, the same for all clocks (default: 2 to 6 ms times "
          "--time-scale, depending on the clock)")
      ->check(number_within(0, 1000, "ms"))
      ->type_name("MS")
      ->group(kTraining);
}

void add_measurement_options(CLI::App& demo, DemoOptions& options) {
  demo.add_option("--iterations", options.iterations, "Iterations to measure in each phase")
      ->capture_default_str()
      ->check(whole_number_within(2, 10000))
      ->type_name("N")
      ->group(kRun);
  demo.add_flag("--known-profile,!--in-vivo", options.known_profile,
                "Give the server the profile, or measure it while the job trains (default)")
      ->group(kRun);
}

void add_process_options(CLI::App& demo, DemoOptions& options) {
  demo.add_option("--server-port", options.server_port,
                  "Keep the server and its dashboard running at this port until Ctrl-C; 0: a free one")
      ->check(whole_number_within(0, 65535))
      ->type_name("PORT")
      ->group(kRun);
  demo.add_option(
          "--scratch", options.scratch,
          "Directory that keeps GPU state files, logs and database (default: a temporary one, removed at the end)")
      ->type_name("DIR")
      ->group(kRun);
}

/// The story 'power' has its own jobs, and a server whose leases are real seconds.
void refuse_options_of_one_job(const CLI::App& demo, const DemoOptions& options) {
  if (*options.time_scale < kLeastPowerScale) {
    throw CLI::ValidationError("--time-scale", fmt::format("{:g}; allowed with --story power: {:g} or more",
                                                           *options.time_scale, kLeastPowerScale));
  }
  for (const char* option : {"--stages", "--microbatches", "--dp", "--schedule", "--iterations"}) {
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
  add_host_options(*demo, *options);
  add_measurement_options(*demo, *options);
  add_process_options(*demo, *options);
  demo->add_option("--story", options->story,
                   "saving: one job, and its energy; power: three jobs under the watt limit of a site that falls by 30 "
                   "%, the server killed during a ramp, then a job killed")
      ->capture_default_str()
      ->check(CLI::IsMember({"saving", "power"}).description(""))
      ->type_name("NAME")
      ->group(kRun);
  demo->add_option("--server-kills", options->server_kills,
                   "Ramps of the story 'power'; at a random moment of each the server is killed")
      ->capture_default_str()
      ->check(whole_number_within(1, 100))
      ->type_name("N")
      ->group(kRun);
  demo->add_option("--seed", options->seed, "Random seed of these moments (default: another one each time)")
      ->type_name("N")
      ->group(kRun);
  demo->add_option("--out", options->out,
                   "Write the results to this directory, whole or not at all: report.html, summary.json, and of the "
                   "story 'saving' details.json and timeline.svg, of 'power' power.csv and server.csv")
      ->capture_default_str()
      ->type_name("DIR");
  add_json_flag(*demo, command);
  demo->footer(help_footer(kServiceErrors,
                           "  perseus demo\n"
                           "  perseus demo --server-port 7787\n"
                           "  perseus demo --story power\n"
                           "  perseus demo --profile gpt3.csv --blocking-power 83.64 --schedule gpipe --dp 3\n") +
               "   1  the verdict of --story power does not hold\n");
  demo->callback([demo, options, &command] {
    const bool is_power = options->story == "power";
    if (is_power) {
      if (!options->time_scale) options->time_scale = kMostDefaultScale;
      refuse_options_of_one_job(*demo, *options);
    }
    if (is_power && demo->count("--known-profile") == 0) options->known_profile = true;
    command.run = [options, &command, is_power] {
      return is_power ? run_power_demo(*options, command.json) : run_demo(*options, command.json);
    };
  });
}

}  // namespace perseus::cli
