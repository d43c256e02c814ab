// perseus emulate: a training job on a cluster in virtual time, method by method, and how it scales.
#include "simulation/emulator/emulate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "command_line/command.h"
#include "command_line/output_directory.h"
#include "command_line/progress.h"
#include "io/formats/profile_csv.h"
#include "io/formats/scenario_toml.h"
#include "paper/emulation_output.h"
#include "plan/pipeline.h"
#include "plan/trace_input.h"
#include "plan/traced_pipeline.h"
#include "planning/checker/plan_run.h"
#include "planning/model/make_schedule.h"
#include "planning/model/profile_doubts.h"
#include "planning/model/reference_plans.h"
#include "planning/model/schedule.h"
#include "server/profiling/pooled_profile.h"
#include "simulation/emulator/drawn_stragglers.h"
#include "simulation/emulator/scaling.h"

namespace perseus::cli {
namespace {

struct EmulateOptions {
  std::string scenario;
  TraceInput trace;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> methods;
  std::string out;
  std::optional<bool> progress;
};

/// all-max first, the others in the requested order, each once.
std::vector<std::string> all_methods(const model::Scenario& scenario) {
  std::vector<std::string> methods{"all-max"};
  for (const std::string& name : scenario.methods)
    if (std::ranges::find(methods, name) == methods.end()) methods.push_back(name);
  return methods;
}

Status check_methods(const std::vector<std::string>& methods) {
  const std::vector<std::string_view> known = emulator::emulated_method_names();
  for (const std::string& name : methods) {
    if (std::ranges::find(known, name) != known.end()) continue;
    return Error{ErrorCode::usage, fmt::format("methods: '{}'; allowed: {}", name, fmt::join(known, ", "))};
  }
  return Ok{};
}

/// The traced job in place of the scenario's pipelines and transfers: replicas, order, microbatches, latencies. The
/// scenario keeps the profile, which is scaled to the timeline, and the tensor-parallel degree.
Result<UnderstoodTrace> take_trace(TraceInput input, model::Scenario& scenario) {
  if (scenario.kinds.size() != 1)
    return Error{ErrorCode::usage, fmt::format("--trace: {} [[pipelines]] in the scenario; allowed: one, whose profile "
                                               "is scaled to the timeline",
                                               scenario.kinds.size())};
  input.degrees.tensor_parallel = scenario.tensor_parallel;
  auto trace = read_trace_input(input);
  if (!trace) return trace.error();
  if (Status good = check_believable(*trace, input); !good) return good.error();
  model::ScenarioKind& kind = scenario.kinds.front();
  const auto schedule = model::schedule_named(trace->job.schedule().name);
  if (!schedule)
    return Error{ErrorCode::usage, fmt::format("{}: its order is that of no named schedule; 'perseus plan --trace' "
                                               "takes any order",
                                               input.files.front())};
  kind.schedule = *schedule;
  kind.chunks = trace->job.stages / trace->job.ranks;
  kind.microbatches = trace->job.microbatches;
  kind.pipelines = trace->job.pipelines;
  if (trace->job.tensor_parallel != scenario.tensor_parallel)
    return Error{ErrorCode::invalid_input,
                 fmt::format("{}: {} tensor-parallel ranks; the scenario's [cluster] tensor_parallel is {}",
                             input.files.front(), trace->job.tensor_parallel, scenario.tensor_parallel)};
  trace->job.tensor_parallel = 1;  // the emulator multiplies by the scenario's
  scenario.timing.transfer_latency = latency_of(*trace);
  scenario.timing.blocking_transfers = senders_wait(*trace);
  scenario.timing.serial_transfers = false;
  return trace;
}

Result<std::vector<model::Profile>> read_profiles(const model::Scenario& scenario,
                                                  const std::optional<UnderstoodTrace>& trace) {
  std::vector<model::Profile> profiles;
  for (const model::ScenarioKind& kind : scenario.kinds) {
    Result<model::Profile> profile =
        trace ? scaled_profile(*trace, kind.profile) : formats::read_profile_csv(kind.profile);
    if (!profile) return Error{profile.error().code, fmt::format("{}: {}", kind.where, profile.error().message)};
    for (const std::string& doubt : model::profile_doubts(*profile, scenario.blocking_power))
      note(fmt::format("{}: {}", kind.profile, doubt));
    profiles.push_back(*std::move(profile));
  }
  return profiles;
}

/// The emulator takes every profile as true: it says so of noisy ones.
void add_noise(const model::Scenario& scenario, const std::vector<model::Profile>& profiles,
               std::vector<report::ReportFact>& facts) {
  for (std::size_t k = 0; k < profiles.size(); ++k) {
    const profiling::PooledProfile pooled = profiling::pool(profiles[k]);
    if (!pooled.changed) continue;
    facts.push_back({fmt::format("noise of '{}'", scenario.kinds[k].name),
                     fmt::format("{:.2g} % of time, {:.2g} % of power in a sample; the profile counts as true here, so "
                                 "plans save less and take longer than this on average",
                                 100 * pooled.time_noise, 100 * pooled.power_noise)});
  }
}

std::vector<report::ReportFact> facts_of(const model::Scenario& scenario,
                                         const std::vector<emulator::PipelineKind>& kinds, std::size_t stragglers) {
  std::vector<report::ReportFact> facts;
  double gpus = 0;
  for (const emulator::PipelineKind& kind : kinds) gpus += static_cast<double>(kind.pipelines) * kind.gpus();
  facts.push_back({"cluster", fmt::format("{:.0f} GPUs, {} pipelines, tensor parallel {}", gpus,
                                          scenario.num_pipelines(), scenario.tensor_parallel)});
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    const model::ScenarioKind& kind = scenario.kinds[k];
    facts.push_back(
        {fmt::format("pipelines '{}'", kind.name),
         fmt::format("{} x {} GPUs, {}, {} microbatches, {:.4f} s at maximum clock, fastest {:.4f} s", kind.pipelines,
                     kinds[k].gpus(), kind.schedule, kind.microbatches,
                     checker::run_plan(kinds[k].dag, model::all_maximum_clock(kinds[k].dag)).makespan.value(),
                     kinds[k].bound.t_min().value())});
  }
  if (scenario.duration) facts.push_back({"time", fmt::format("{:g} s", scenario.duration->value())});
  if (scenario.iterations) facts.push_back({"iterations", std::to_string(*scenario.iterations)});
  if (const model::ClusterTiming& t = scenario.timing; !t.transfer_latency.is_zero()) {
    facts.push_back({"transfer latency", fmt::format("{}{}", model::text_of(t.transfer_latency),
                                                     t.blocking_transfers ? ", the sender waits"
                                                     : t.serial_transfers ? ", transfers queue"
                                                                          : "")});
  }
  facts.push_back({"stragglers", fmt::format("{}, seed {}", stragglers, scenario.seed)});
  return facts;
}

Result<std::vector<EmulatedMethod>> emulate_methods(const model::Scenario& scenario,
                                                    const std::vector<emulator::PipelineKind>& kinds,
                                                    const std::vector<model::Straggler>& stragglers,
                                                    const EmulateOptions& options) {
  std::vector<EmulatedMethod> methods;
  for (const std::string& name : all_methods(scenario)) {
    ProgressLine progress("planning and emulating, " + name, options.progress);
    const Result<emulator::MethodPlans> plans = emulator::plan_method(name, kinds, scenario, progress.callback());
    if (!plans) return plans.error();
    emulator::Emulator emulator(scenario, kinds, *plans);
    const Joules fastest = emulator.run(stragglers, emulator::Response::default_plans).energy_per_iteration();
    EmulatedMethod method{name, emulator.run(stragglers, emulator::Response::look_up), {}};
    const Joules reference = methods.empty() ? fastest : methods.front().run.energy_per_iteration();
    method.savings = emulator::savings_of(reference, fastest, method.run.energy_per_iteration());
    methods.push_back(std::move(method));
  }
  return methods;
}

/// The transfer latencies have an entry for each boundary that a kind of pipeline uses, or that another kind of as many
/// ranks uses beside them.
Status check_transfers(const model::Scenario& scenario, const std::vector<model::Profile>& profiles) {
  std::vector<model::Schedule> schedules;
  for (std::size_t k = 0; k < profiles.size(); ++k) {
    const model::ScenarioKind& kind = scenario.kinds[k];
    const int stages = profiles[k].num_stages();
    Result<model::Schedule> made =
        model::make_schedule(kind.schedule, {stages / kind.chunks, kind.microbatches, kind.chunks});
    if (!made || stages % kind.chunks != 0) return Ok{};  // make_kind() has the reason
    schedules.push_back(*std::move(made));
  }
  for (std::size_t k = 0; k < schedules.size(); ++k) {
    std::vector<model::Schedule> alike;
    for (const model::Schedule& other : schedules) {
      const bool covers = model::boundary_count(other) >= model::boundary_count(schedules[k]);
      if (other.num_ranks() == schedules[k].num_ranks() && covers) alike.push_back(other);
    }
    const Status counted =
        check_transfer_count(scenario.timing.transfer_latency, alike,
                             {ErrorCode::invalid_input, scenario.kinds[k].where + ": transfer_latency_s"});
    if (!counted) return counted.error();
  }
  return Ok{};
}

Result<EmulationReport> emulate_scenario(const model::Scenario& scenario, const EmulateOptions& options,
                                         const std::optional<UnderstoodTrace>& trace) {
  const Result<std::vector<model::Profile>> profiles = read_profiles(scenario, trace);
  if (!profiles) return profiles.error();
  if (Status counted = check_transfers(scenario, *profiles); !counted) return counted.error();
  std::vector<emulator::PipelineKind> kinds;
  for (std::size_t k = 0; k < profiles->size(); ++k) {
    Result<emulator::PipelineKind> kind = emulator::make_kind((*profiles)[k], scenario.kinds[k], scenario);
    if (!kind) return kind.error();
    kinds.push_back(*std::move(kind));
  }
  if (Status checked = emulator::check_stragglers(scenario, kinds); !checked) return checked.error();
  EmulationReport report{scenario.name, {}, {}, {}};
  std::size_t num_stragglers = scenario.stragglers.size();
  if (scenario.duration || scenario.iterations) {
    const Result<std::vector<model::Straggler>> stragglers = emulator::draw_stragglers(scenario, kinds);
    if (!stragglers) return stragglers.error();
    num_stragglers = stragglers->size();
    Result<std::vector<EmulatedMethod>> methods = emulate_methods(scenario, kinds, *stragglers, options);
    if (!methods) return methods.error();
    report.methods = *std::move(methods);
  }
  if (scenario.sweep) {
    ProgressLine progress("emulating all sizes", options.progress);
    Result<std::vector<emulator::ScalingRow>> rows =
        emulator::emulate_scaling(scenario, profiles->front(), progress.callback());
    if (!rows) return rows.error();
    report.scaling = *std::move(rows);
  }
  report.facts = facts_of(scenario, kinds, num_stragglers);
  if (trace)
    report.facts.insert(report.facts.begin(),
                        {{"timeline", origin_of(*trace, options.trace)}, {"assumed", assumption_of(*trace)}});
  add_noise(scenario, *profiles, report.facts);
  return report;
}

Result<int> run_emulate(const EmulateOptions& options, bool as_json) {
  Result<model::Scenario> scenario = formats::read_scenario(options.scenario, !options.trace.files.empty());
  if (!scenario) return scenario.error();
  if (options.seed) scenario->seed = *options.seed;
  if (!options.methods.empty()) scenario->methods = options.methods;
  std::optional<UnderstoodTrace> trace;
  if (!options.trace.files.empty()) {
    auto taken = take_trace(options.trace, *scenario);
    if (!taken) return taken.error();
    trace = *std::move(taken);
  }
  if (Status known = check_methods(scenario->methods); !known) {
    return options.methods.empty()
               ? Error{ErrorCode::invalid_input, fmt::format("{}: {}", options.scenario, known.error().message)}
               : known.error();
  }
  if (Status writable = check_emulation(options.out); !writable) return writable.error();
  const Result<EmulationReport> report = emulate_scenario(*scenario, options, trace);
  if (!report) return report.error();
  if (Status written = write_emulation(options.out, *report); !written) return written.error();
  if (as_json) {
    print_json(json_of(*report));
    return 0;
  }
  print(emulation_text(*report));
  if (!options.out.empty()) print("\n" + written_text(options.out, "emulation.html"));
  return 0;
}

}  // namespace

void add_emulate(CLI::App& app, Command& command) {
  auto* emulate = app.add_subcommand("emulate", "Emulate a training job on a large cluster, stragglers included");
  auto options = std::make_shared<EmulateOptions>();
  emulate
      ->add_option("SCENARIO.toml", options->scenario,
                   "Cluster, pipelines, stragglers, failures and the sizes of a scaling sweep; see docs/emulator.md "
                   "and data/sample_scenario.toml")
      ->required();
  add_trace_option(*emulate, options->trace);
  add_value(*emulate, "--seed N", options->seed, "Random seed (default: the scenario's)",
            whole_number_within(0, 9007199254740992));
  add_value(*emulate, "--methods NAME,...", options->methods,
            fmt::format("Methods to emulate, of {}, and always all-max for comparison (default: the scenario's)",
                        fmt::join(emulator::emulated_method_names(), ", ")))
      ->delimiter(',');
  add_value(*emulate, "--out DIR", options->out,
            "Write an HTML page, charts and tables to this directory, whole or not at all; replaces an earlier "
            "emulation");
  add_progress_flag(*emulate, options->progress);
  emulate->footer(help_footer(kFileErrors,
                              "  perseus emulate data/sample_scenario.toml --out emulation\n"
                              "  perseus emulate data/sample_scenario.toml --seed 8 --methods exact,envpipe --json\n"
                              "  perseus emulate scenario.toml --trace timeline.json.gz\n"));
  set_run(*emulate, command, options, run_emulate);
}

}  // namespace perseus::cli
