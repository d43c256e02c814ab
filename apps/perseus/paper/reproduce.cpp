// perseus reproduce: the paper's emulated tables and figures from the published artifact's profiles.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "command_line/command.h"
#include "command_line/origin.h"
#include "command_line/progress.h"
#include "command_line/terminal_size.h"
#include "evaluation/reproduction/artifact.h"
#include "io/formats/number.h"
#include "io/report/table.h"
#include "paper/reproduction_output.h"
#include "plan/effort.h"
#include "plan/pipeline.h"
#include "planning/baselines/methods.h"
#include "planning/model/build_dag.h"
#include "planning/model/make_schedule.h"
#include "planning/model/profile.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

/// Constants of known GPUs that the artifact's files lack, from publications.
struct KnownGpu {
  const char* name;
  double blocking_power_w;
  double tau_s;
};
constexpr KnownGpu kKnownGpus[] = {{"a100_sxm", 83.64, 0.001}, {"a40", 70.38, 0.0001}};
constexpr double kDefaultTau_s = 0.001;
constexpr int kPapersMicrobatches[] = {12, 24, 48, 96};
constexpr std::size_t kNotesShown = 20;

struct ReproduceOptions {
  std::string data;
  std::string out;
  std::vector<int> microbatches;  ///< none: the paper's, and all with a published result
  std::vector<std::string> blocking_power;
  std::vector<std::string> tau;
  std::string effort = "normal";
  std::optional<bool> progress;
};

/// GPU=NUMBER, once for each GPU.
Result<std::map<std::string, double>> by_gpu(const char* option, const std::vector<std::string>& texts, double least,
                                             const reproduction::Artifact& artifact) {
  std::map<std::string, double> values;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    const std::string gpu = text.substr(0, equals);
    const auto value = equals == std::string::npos ? std::nullopt : formats::number_in<double>(text.substr(equals + 1));
    if (!value || gpu.empty() || !(*value >= least && *value <= 1e6)) {
      return Error{ErrorCode::usage,
                   fmt::format("{}: '{}' is not GPU=NUMBER with a number from {:g} to 1e+06", option, text, least)};
    }
    if (std::ranges::find(artifact.profiles, gpu, &reproduction::EmulatedProfile::gpu) == artifact.profiles.end()) {
      std::vector<std::string_view> known;
      for (const reproduction::EmulatedProfile& p : artifact.profiles) {
        if (std::ranges::find(known, p.gpu) == known.end()) known.push_back(p.gpu);
      }
      return Error{ErrorCode::usage,
                   fmt::format("{}: no profile is of '{}'; there are {}", option, gpu, fmt::join(known, ", "))};
    }
    if (!values.emplace(gpu, *value).second) {
      return Error{ErrorCode::usage, fmt::format("{}: '{}' is given twice", option, gpu)};
    }
  }
  return values;
}

const KnownGpu* known(const std::string& gpu) {
  const auto found = std::ranges::find_if(kKnownGpus, [&](const KnownGpu& k) { return k.name == gpu; });
  return found == std::end(kKnownGpus) ? nullptr : found;
}

Result<std::vector<int>> checked_microbatches(std::vector<int> microbatches) {
  std::ranges::sort(microbatches);
  microbatches.erase(std::unique(microbatches.begin(), microbatches.end()), microbatches.end());
  for (const int m : microbatches) {
    if (m >= 1 && kGlobalBatchSize % m == 0) continue;
    return Error{
        ErrorCode::usage,
        fmt::format("--microbatches: {} does not divide the global batch of {} (paper, table 5)", m, kGlobalBatchSize)};
  }
  return microbatches;
}

/// Unusable cases: printed at once, and kept for --json. Past kNotesShown only counted on the terminal.
class LeftOut {
 public:
  void add(std::string what) {
    if (all_.size() < kNotesShown) note("left out: " + what);
    if (all_.size() == kNotesShown) note("more is left out; --json lists all of it");
    all_.push_back(std::move(what));
  }
  [[nodiscard]] const std::vector<std::string>& all() const { return all_; }

 private:
  std::vector<std::string> all_;
};

/// The paper's scales, and further ones with a published result.
std::vector<int> scales_of(const std::string& data, const reproduction::Artifact& artifact,
                           const reproduction::EmulatedProfile& profile, LeftOut& left_out) {
  std::vector<int> scales(std::begin(kPapersMicrobatches), std::end(kPapersMicrobatches));
  for (const int m : reproduction::published_microbatches(data, artifact, profile)) {
    if (kGlobalBatchSize % m == 0) {
      scales.push_back(m);
    } else {
      left_out.add(fmt::format("{}+{}, {} microbatches: they do not divide the global batch of {} (paper, table 5)",
                               profile.model, profile.gpu, m, kGlobalBatchSize));
    }
  }
  std::ranges::sort(scales);
  scales.erase(std::unique(scales.begin(), scales.end()), scales.end());
  return scales;
}

struct GpuFacts {
  Watts blocking_power;
  Seconds tau;
};

GpuFacts facts_of(const reproduction::EmulatedProfile& profile, const std::map<std::string, double>& powers,
                  const std::map<std::string, double>& taus) {
  const KnownGpu* gpu = known(profile.gpu);
  GpuFacts facts{gpu != nullptr ? Watts(gpu->blocking_power_w) : model::guessed_blocking_power(profile.profile),
                 Seconds(gpu != nullptr ? gpu->tau_s : kDefaultTau_s)};
  if (const auto given = taus.find(profile.gpu); given != taus.end()) facts.tau = Seconds(given->second);
  if (const auto given = powers.find(profile.gpu); given != powers.end()) {
    facts.blocking_power = Watts(given->second);
  } else if (gpu == nullptr) {
    note(fmt::format("{}: no --blocking-power {}=W was given: {:.3g} W is assumed for {}, a fifth of its highest power",
                     profile.gpu, profile.gpu, facts.blocking_power.value(), profile.model));
  }
  return facts;
}

/// One case to plan, and its position among all of them.
struct ReproductionTask {
  const reproduction::EmulatedProfile* profile;
  int microbatches;
  GpuFacts facts;
  std::string counted;  ///< "3 of 8"
};

Result<ReproducedCase> reproduce_case(const ReproduceOptions& options, const reproduction::Artifact& artifact,
                                      const ReproductionTask& job, LeftOut& left_out) {
  const reproduction::EmulatedProfile& profile = *job.profile;
  const int stages = profile.profile.num_stages();
  const Result<model::Schedule> schedule = model::make_schedule("1f1b", {stages, job.microbatches, 1});
  if (!schedule) return schedule.error();
  const Result<model::ComputationDag> dag =
      model::build_dag(profile.profile, *schedule, {job.facts.blocking_power, Seconds(0)});
  if (!dag) return dag.error();

  std::optional<report::IterationCost> envpipe;
  if (const reproduction::PublishedIteration* published = artifact.envpipe_of(profile, job.microbatches)) {
    envpipe = report::IterationCost{published->time, published->energy, {}};
  }
  planner::PlannerOptions planner;
  planner.effort = effort_named(options.effort);
  ProgressLine progress(
      fmt::format("planning {} on {}, {} microbatches ({})", profile.model, profile.gpu, job.microbatches, job.counted),
      options.progress);
  planner.progress = progress.callback();
  Result<reproduction::EmulatedCase> plans = reproduction::EmulatedCase::plan(*dag, job.facts.tau, planner, envpipe);
  if (!plans) return plans.error();

  const auto published = reproduction::read_published_frontier(options.data, profile, job.microbatches);
  std::optional<reproduction::FrontierComparison> comparison;
  if (!published) {
    left_out.add(published.error().message);
  } else if (*published) {
    comparison = reproduction::compare_frontiers(plans->paper(), **published, job.facts.tau);
  }
  return ReproducedCase{profile.model, profile.gpu,       stages,    job.microbatches, job.facts.blocking_power,
                        job.facts.tau, *std::move(plans), comparison};
}

/// "tiny+gpu_x (2, 4), big+gpu_x (12)": the cases that lack something; "" if none does.
std::string listed(const std::vector<ReproducedCase>& cases, bool (*lacks)(const ReproducedCase&)) {
  std::string text, last;
  for (const ReproducedCase& c : cases) {
    if (!lacks(c)) continue;
    const std::string profile = fmt::format("{}+{}", c.model, c.gpu);
    text += profile == last ? fmt::format(", {}", c.microbatches)
                            : fmt::format("{}{} ({}", text.empty() ? "" : "), ", profile, c.microbatches);
    last = profile;
  }
  return text.empty() ? text : text + ")";
}

/// Notes the cases, by their microbatches, for which the artifact has no result.
void note_what_is_unpublished(const std::vector<ReproducedCase>& cases) {
  const std::string envpipe = listed(cases, [](const ReproducedCase& c) { return !c.plans.envpipe(); });
  if (!envpipe.empty()) note("the artifact has no EnvPipe result, so these fields are empty: " + envpipe);
  const std::string frontiers = listed(cases, [](const ReproducedCase& c) { return !c.published; });
  if (!frontiers.empty()) note("the artifact has no frontier to compare with: " + frontiers);
}

json::object json_report(const std::vector<ReproducedCase>& cases, const LeftOut& left_out, const std::string& out) {
  json::array without(left_out.all().begin(), left_out.all().end());
  return {
      {"table6", table6_of(cases).json()}, {"left_out", std::move(without)}, {"out", out}, {"origin", origin_json()}};
}

std::vector<report::ReportFact> facts_of_page(const ReproduceOptions& options, const LeftOut& left_out) {
  std::vector<report::ReportFact> facts{{"data", options.data}};
  if (!left_out.all().empty()) facts.push_back({"left out", fmt::format("{}", fmt::join(left_out.all(), "; "))});
  return with_origin(std::move(facts));
}

Result<int> run_reproduce(const ReproduceOptions& options, bool as_json) {
  const Result<std::vector<int>> microbatches = checked_microbatches(options.microbatches);
  if (!microbatches) return microbatches.error();
  const Result<reproduction::Artifact> artifact = reproduction::read_artifact(options.data);
  if (!artifact) return artifact.error();
  const auto powers = by_gpu("--blocking-power", options.blocking_power, 0, *artifact);
  if (!powers) return powers.error();
  const auto taus = by_gpu("--tau", options.tau, 1e-9, *artifact);
  if (!taus) return taus.error();
  if (Status writable = check_reproduction(options.out); !writable) return writable.error();

  LeftOut left_out;
  for (const std::string& what : artifact->left_out) left_out.add(what);
  std::vector<ReproductionTask> jobs;
  for (const reproduction::EmulatedProfile& profile : artifact->profiles) {
    const GpuFacts facts = facts_of(profile, *powers, *taus);
    const std::vector<int> scales =
        microbatches->empty() ? scales_of(options.data, *artifact, profile, left_out) : *microbatches;
    for (const int m : scales) jobs.push_back({&profile, m, facts, ""});
  }
  std::vector<ReproducedCase> cases;
  std::optional<Error> first;
  for (std::size_t k = 0; k < jobs.size(); ++k) {
    ReproductionTask& job = jobs[k];
    job.counted = fmt::format("{} of {}", k + 1, jobs.size());
    Result<ReproducedCase> reproduced = reproduce_case(options, *artifact, job, left_out);
    if (reproduced) {
      cases.push_back(*std::move(reproduced));
      continue;
    }
    const std::string what = fmt::format("{}+{}, {} microbatches: {}", job.profile->model, job.profile->gpu,
                                         job.microbatches, reproduced.error().message);
    if (!first) first = Error{reproduced.error().code, what};
    left_out.add(what);
  }
  if (cases.empty()) return *first;
  note_what_is_unpublished(cases);
  const Status written = write_reproduction(options.out, cases, facts_of_page(options, left_out));
  if (!written) return written.error();
  if (as_json) {
    print_json(json_report(cases, left_out, options.out));
    return 0;
  }
  print(report::text_of(table6_of(cases, "saving at the fastest point [%]", " ").text(), output_columns()));
  print(
      fmt::format("\nwritten to {}: table5.csv, table6.csv, figure7.csv, figure8.csv, non_straggler.csv, cases.csv, "
                  "frontiers.csv and "
                  "pictures; to look at: {}/index.html\n",
                  options.out, options.out));
  if (!left_out.all().empty()) print(fmt::format("left out: {} (see the notes)\n", left_out.all().size()));
  return 0;
}

}  // namespace

void add_reproduce(CLI::App& app, Command& command) {
  auto* reproduce =
      app.add_subcommand("reproduce", "Reproduce the paper's emulated tables and figures from its published data");
  auto options = std::make_shared<ReproduceOptions>();
  reproduce
      ->add_option("DATA_DIR", options->data,
                   "Directory of the published artifact: emulation/stage_profile/MODEL+GPU_bf16.csv and, if they "
                   "exist, emulation/envpipe_result.csv and emulation/iteration_time_energy/; see docs/reproduction.md")
      ->required();
  add_value(*reproduce, "--out DIR", options->out, "Write tables and charts to this directory, whole or not at all")
      ->required();
  add_value(*reproduce, "-m,--microbatches M,...", options->microbatches,
            "Microbatches per iteration and pipeline, one for each scale (default: 12,24,48,96 and all others "
            "in the artifact's "
            "results)")
      ->delimiter(',');
  add_value(*reproduce, "--blocking-power GPU=W", options->blocking_power,
            "Power of one waiting accelerator, in watts (default: 83.64 for a100_sxm, 70.38 for a40, else 20 % of the "
            "profile's peak power)");
  add_value(*reproduce, "--tau GPU=S", options->tau,
            "Time unit of the published method, in seconds (default: 0.0001 for a40, else 0.001)");
  add_effort_option(*reproduce, options->effort,
                    "Effort of the exact planner: low, normal or high; more takes longer and narrows the gap");
  add_progress_flag(*reproduce, options->progress);
  reproduce->footer(help_footer(kFileErrors,
                                "  perseus reproduce sosp24_data --out reproduction\n"
                                "  perseus reproduce sosp24_data --out small --microbatches 12 --effort low\n"
                                "  perseus reproduce my_data --out mine --blocking-power h100=110 --tau h100=0.001\n"));
  set_run(*reproduce, command, options, run_reproduce);
}

}  // namespace perseus::cli
