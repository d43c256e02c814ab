// Prints the tables of docs/measurements/choices.md: what each choice saves on the published profiles, all proven.
//
// usage: choices_report [WORKLOAD]     (A part of a workload's name, such as "A40 GPT-3": only those. Default: all.)
//
// The limit for each workload is its T_max: the time of 1F1B as measured with everything at maximum clock. The
// report prints the savings of clocks alone, of 0.3 % more time, of recomputation only where memory needs it (no memory
// limit: on the last stage), of the schedules with a backward split in halves, and of both; then those of each
// schedule by itself. The last column is the bound: no plan of any tried configuration saves more. One more table has
// what remains where every rank must fit into the memory of its accelerator, by the zoo's model of memory.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "bench/cases.h"
#include "planning/baselines/best_of_all.h"
#include "planning/model/default_plan.h"
#include "planning/model/make_schedule.h"
#include "planning/model/reference_plans.h"
#include "planning/partitioner/model_zoo.h"
#include "planning/planner/realize.h"
#include "planning/search/configuration.h"
#include "planning/search/repartition.h"
#include "planning/search/union_frontier.h"

namespace perseus::bench {
namespace {

using search::Configuration;
using search::ConfigurationChoice;
using search::MeasuredWith;
using search::Recomputing;

constexpr double kA100_gib = 80, kA40_gib = 48;
struct Workload {
  const char* name;
  const char* file;
  double blocking_power_w;
  std::vector<int> microbatches;
  double memory_gib;                 ///< of one accelerator
  const char* model;                 ///< in the zoo; empty: its memory is not known
  std::vector<int> layers;           ///< transformer layers of each stage, from the paper's partitions
  partitioner::Workload setup = {};  ///< of memory; sequence length 0: the zoo's
  bool divides = false;              ///< other partitions are tried, for the first number of microbatches only
};
const std::vector<int> kTwelveLayers(8, 12);
const partitioner::Workload kEmulated{1, 2048, 8, 1, partitioner::Precision::bf16};
const std::vector<Workload> kWorkloads{
    {"A100 GPT-3 175B",
     "emulation/stage_profile/gpt3-175b+a100_sxm_bf16.csv",
     83.64,
     {12, 24, 48, 96},
     kA100_gib,
     "gpt3-175b",
     kTwelveLayers,
     kEmulated,
     true},
    {"A40 GPT-3 175B",
     "emulation/stage_profile/gpt3-175b+a40_bf16.csv",
     70.38,
     {12, 24, 48, 96},
     kA40_gib,
     "gpt3-175b",
     kTwelveLayers,
     kEmulated,
     true},
    {"A100 GPT-3 XL", "measured/A100_gpt3-xl_pp4.profile_grid.csv", 83.64, {128}, kA100_gib, "gpt3-1b", {6, 6, 7, 5}},
    {"A100 BERT huge",
     "measured/A100_bert-huge-uncased_pp4.profile.csv",
     83.64,
     {32},
     kA100_gib,
     "bert-1.3b",
     {7, 6, 6, 5}},
    {"A40 Bloom 3B",
     "measured/A40_bloom-3b_pp8.profile_grid.csv",
     70.38,
     {128},
     kA40_gib,
     "bloom-3b",
     {5, 4, 4, 4, 4, 4, 4, 1}},
    {"A40 Wide-ResNet101", "measured/A40_wide-resnet101_8_pp8.profile_grid.csv", 70.38, {48}, kA40_gib, "", {}}};
constexpr double kTolerance = 0.003;

struct Planned {
  search::Configuration configuration;
  model::Frontier frontier;
};

class Savings {
 public:
  Savings(const search::SearchedJob& job, Seconds t_max, Joules before) : job_(job), t_max_(t_max), before_(before) {}

  /// Index of the planned configuration, or -1 if it is impossible.
  int plan(const search::ConfigurationChoice& choice) { return plan(job_, choice); }
  int plan(const search::SearchedJob& job, const search::ConfigurationChoice& choice) {
    Result<search::Configuration> made = search::configure(job, choice);
    if (!made) return -1;
    for (std::size_t c = 0; job.variant.empty() && c < planned_.size(); ++c) {
      const search::Configuration& earlier = planned_[c].configuration;
      const bool is_same = earlier.choice.schedule == choice.schedule && earlier.recomputes == made->recomputes;
      if (is_same && !earlier.name.ends_with(search::kPartitionVariant)) return static_cast<int>(c);
    }
    planner::PlannerOptions options;
    options.also = {t_max_, (1 + kTolerance) * t_max_};
    model::Frontier frontier = *baselines::plan_best_of_all(made->dag, options);
    planned_.push_back({*std::move(made), std::move(frontier)});
    return static_cast<int>(planned_.size()) - 1;
  }

  [[nodiscard]] Seconds t_max() const { return t_max_; }

  /// The configuration that saves most in time: its name and, if it is not the measured one, its partition.
  std::string best_of(const std::vector<int>& which) const {
    std::string best = "-";
    Joules least = before_;
    for (const int c : which) {
      if (c < 0) continue;
      const auto point = search::cheapest_in_time(planned_[c].frontier, t_max_);
      if (!point || planned_[c].frontier.points[*point].energy >= least) continue;
      least = planned_[c].frontier.points[*point].energy;
      best = planned_[c].configuration.name;
      const std::vector<int>& layers = planned_[c].configuration.layers;
      if (best.ends_with(search::kPartitionVariant)) best += fmt::format(", layers {}", fmt::join(layers, " "));
    }
    return best;
  }

  /// In percent, of the union; nothing if no plan meets the deadline. `bound`: the saving of the lower bound there.
  std::string saving(const std::vector<int>& which, double slowdown, bool bound = false) const {
    std::vector<const model::Frontier*> members;
    for (const int c : which) {
      if (c >= 0) members.push_back(&planned_[c].frontier);
    }
    if (members.empty()) return "-";
    const Watts waiting = planned_.front().configuration.dag.total_blocking_power();
    const search::UnionFrontier all = search::union_of(members, waiting);
    const auto chosen = search::cheapest_in_time(all.frontier, t_max_ * (1 + slowdown));
    if (!chosen) return "-";
    const model::FrontierPoint& point = all.frontier.points[*chosen];
    const Joules energy =
        bound ? search::least_energy_in_time(members, waiting, t_max_ * (1 + slowdown)) : point.energy;
    return fmt::format("{:.2f}", 100 * ((before_ - energy) / before_));
  }

 private:
  const search::SearchedJob& job_;
  Seconds t_max_;
  Joules before_;
  std::vector<Planned> planned_;
};

struct Row {
  std::string cumulative, schedules, within_memory, partition;
};

int chunks_of(const std::string& schedule) {
  const int fixed = model::chunks_fixed_by(schedule);
  return fixed == 0 ? 2 : fixed;
}

/// What remains if every rank must fit into the memory of its accelerator. `savings` holds the configurations of `job`.
std::string row_within_memory(const Workload& workload, search::SearchedJob job, const std::string& name, bool divides,
                              Savings& savings) {
  partitioner::Workload setup = workload.setup;
  if (setup.sequence_length == 0) setup = partitioner::zoo_entry(workload.model).value().workload;
  const auto memory_of = [model = std::string(workload.model), setup](const std::vector<int>& layers) {
    return partitioner::zoo_memory(model, setup, static_cast<int>(layers.size()), layers);
  };
  const Status known = search::set_memory({workload.layers, memory_of}, job);
  PERSEUS_CHECK(known.ok(), "the zoo knows the memory");
  const search::SearchedJob unlimited = job;
  const double needed_gib = std::ranges::max(search::configure(unlimited, {}).value().memory_gib);
  job.memory_limit_gib = workload.memory_gib;
  const ConfigurationChoice measured, best{"1f1b", 1, Recomputing::best};
  std::vector<int> clocks{savings.plan(job, measured)}, recomputation{clocks[0], savings.plan(job, best)};
  std::vector<int> all = recomputation;
  std::string too_large;
  for (const std::string& schedule : model::schedule_names()) {
    if (schedule == "1f1b") continue;
    const ConfigurationChoice as_measured{schedule, chunks_of(schedule), Recomputing::as_measured};
    all.push_back(savings.plan(job, as_measured));
    const bool is_too_large = all.back() < 0 && search::configure(unlimited, as_measured).ok();
    if (is_too_large) too_large += (too_large.empty() ? "" : ", ") + schedule;
    all.push_back(savings.plan(job, {schedule, chunks_of(schedule), Recomputing::best}));
  }
  std::string partition = " - |";
  std::vector<int> divided = all;
  if (divides) {
    for (const ConfigurationChoice& choice : {measured, best, ConfigurationChoice{"zero-bubble"},
                                              ConfigurationChoice{"zero-bubble", 1, Recomputing::best}}) {
      const auto cut = search::with_best_partition(job, choice, workload.layers, savings.t_max());
      divided.push_back(cut ? savings.plan(cut->job, choice) : -1);
    }
    partition = fmt::format(" {} |", savings.saving(divided, 0));
  }
  return fmt::format("| {} | {:.1f} of {:g} GiB | {} | {} | {} |{} {} | {} | {} |", name, needed_gib,
                     workload.memory_gib, savings.saving(clocks, 0), savings.saving(recomputation, 0),
                     savings.saving(all, 0), partition, savings.saving(divided, 0, true), savings.best_of(divided),
                     too_large.empty() ? "-" : too_large);
}

Row row_of(const Workload& workload, const model::Profile& profile, int microbatches) {
  search::SearchedJob job;
  job.profile = profile;
  job.microbatches = microbatches;
  job.costs.blocking_power = Watts(workload.blocking_power_w);
  job.measured_with = search::MeasuredWith::recomputation;
  search::SearchedJob unknown = job;
  unknown.measured_with = search::MeasuredWith::unknown;

  const search::Configuration reference = search::configure(job, {}).value();
  const planner::Realizer::Outcome at_maximum =
      planner::Realizer(reference.dag).realize(model::all_maximum_clock(reference.dag));
  const Joules before = at_maximum.effective_energy + reference.dag.total_blocking_power() * at_maximum.time;
  Savings savings(job, at_maximum.time, before);
  const int plain = savings.plan({});
  const int kept = savings.plan({"1f1b", 1, search::Recomputing::best});
  std::vector<int> schedules{plain}, all{plain, kept};
  std::string each;
  for (const std::string& name : model::schedule_names()) {
    if (name == "1f1b") continue;
    const int chunks = chunks_of(name);
    schedules.push_back(savings.plan({name, chunks, search::Recomputing::as_measured}));
    all.push_back(schedules.back());
    all.push_back(savings.plan({name, chunks, search::Recomputing::best}));
    each += fmt::format(" {} |", savings.saving({schedules.back()}, 0));
  }
  // Split a whole backward in halves if the profile does not record whether it recomputes.
  Savings halves(unknown, at_maximum.time, before);
  const int whole = halves.plan({"zero-bubble", 1, search::Recomputing::as_measured});
  const std::string name = fmt::format("{}, {} microbatches", workload.name, microbatches);
  Row row;
  row.cumulative = fmt::format("| {} | {} | {} | {} | {} | {} | {} |", name, savings.saving({plain}, 0),
                               savings.saving({plain}, kTolerance), savings.saving({plain, kept}, 0),
                               savings.saving(schedules, 0), savings.saving(all, 0), savings.saving(all, 0, true));
  row.schedules = fmt::format("| {} | {} | {} |{}", name, savings.saving({plain}, 0), halves.saving({whole}, 0), each);
  const bool divides = workload.divides && microbatches == workload.microbatches.front();
  if (!workload.layers.empty()) row.within_memory = row_within_memory(workload, job, name, divides, savings);
  if (divides) {
    row.partition = fmt::format("| {} |", name);
    for (const char* schedule : {"1f1b", "zero-bubble"}) {
      for (const double slowdown : {0.0, kTolerance}) {
        const search::ConfigurationChoice choice{schedule, 1, search::Recomputing::as_measured};
        const int measured = halves.plan(choice);
        const auto cut =
            search::with_best_partition(unknown, choice, workload.layers, (1 + slowdown) * at_maximum.time);
        const int moved = cut ? halves.plan(cut->job, choice) : -1;
        row.partition +=
            fmt::format(" {} -> {} |", halves.saving({measured}, slowdown), halves.saving({moved}, slowdown));
        if (cut && slowdown > 0) row.partition += fmt::format(" {} |", text_of(cut->partition));
      }
    }
  }
  return row;
}

int report(std::string_view part_of_name) {
  std::vector<Row> rows;
  for (const Workload& workload : kWorkloads) {
    if (std::string_view(workload.name).find(part_of_name) == std::string_view::npos) continue;
    const Result<model::Profile> profile = formats::read_profile_csv((shared_data() / workload.file).string());
    if (!profile) {
      fmt::print(stderr, "{}\n", profile.error().message);
      return 66;
    }
    for (const int microbatches : workload.microbatches) rows.push_back(row_of(workload, *profile, microbatches));
  }
  fmt::print("| workload | clocks | + 0.3 % time | + recomputation | + schedule | both | bound |\n");
  fmt::print("| --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Row& row : rows) fmt::print("{}\n", row.cumulative);
  fmt::print("\n| workload | 1f1b | zero-bubble, halves |");
  for (const std::string& name : model::schedule_names()) {
    if (name != "1f1b") fmt::print(" {} |", name);
  }
  fmt::print("\n| --- | --- | --- |");
  for (std::size_t i = 1; i < model::schedule_names().size(); ++i) fmt::print(" --- |");
  fmt::print("\n");
  for (const Row& row : rows) fmt::print("{}\n", row.schedules);
  fmt::print(
      "\n| workload | 1f1b needs | clocks | + recomputation | + schedule | + partition | bound | best | too large as "
      "measured |\n");
  fmt::print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Row& row : rows) {
    if (!row.within_memory.empty()) fmt::print("{}\n", row.within_memory);
  }
  fmt::print("\n| workload | 1f1b | 1f1b, + 0.3 % | partition | zero-bubble | zero-bubble, + 0.3 % | partition |\n");
  fmt::print("| --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Row& row : rows) {
    if (!row.partition.empty()) fmt::print("{}\n", row.partition);
  }
  return 0;
}

}  // namespace
}  // namespace perseus::bench

int main(int argc, char** argv) { return perseus::bench::report(argc > 1 ? argv[1] : ""); }
