// Prints the tables of docs/measurements/choices.md: what each choice saves on the published profiles, all proven.
//
// usage: choices_report
//
// The limit for each workload is its T_max: the time of 1F1B as measured with everything at maximum clock. The
// report prints the savings of clocks alone, of 0.3 % more time, of recomputation only where memory needs it (no memory
// limit: on the last stage), of the schedules with a backward split in halves, and of both; then those of each
// schedule by itself. The last column is the bound: no plan of any tried configuration saves more.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bench/cases.h"
#include "planning/baselines/best_of_all.h"
#include "planning/model/default_plan.h"
#include "planning/model/make_schedule.h"
#include "planning/model/reference_plans.h"
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

struct Workload {
  const char* name;
  const char* file;
  double blocking_power_w;
  std::vector<int> microbatches;
  int layers_per_stage = 0;  ///< 0: not published, or not equal; partitions are tried for the first number only
};
const std::vector<Workload> kWorkloads{
    {"A100 GPT-3 175B", "emulation/stage_profile/gpt3-175b+a100_sxm_bf16.csv", 83.64, {12, 24, 48, 96}, 12},
    {"A40 GPT-3 175B", "emulation/stage_profile/gpt3-175b+a40_bf16.csv", 70.38, {12, 24, 48, 96}, 12},
    {"A100 GPT-3 XL", "measured/A100_gpt3-xl_pp4.profile_grid.csv", 83.64, {128}},
    {"A100 BERT huge", "measured/A100_bert-huge-uncased_pp4.profile.csv", 83.64, {32}},
    {"A40 Bloom 3B", "measured/A40_bloom-3b_pp8.profile_grid.csv", 70.38, {128}},
    {"A40 Wide-ResNet101", "measured/A40_wide-resnet101_8_pp8.profile_grid.csv", 70.38, {48}}};
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
    planner::PlannerOptions options;
    options.also = {t_max_, (1 + kTolerance) * t_max_};
    model::Frontier frontier = *baselines::plan_best_of_all(made->dag, options);
    planned_.push_back({*std::move(made), std::move(frontier)});
    return static_cast<int>(planned_.size()) - 1;
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
  std::string cumulative, schedules, partition;
};

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
    const int fixed = model::chunks_fixed_by(name);
    const int chunks = fixed == 0 ? 2 : fixed;
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
  if (workload.layers_per_stage > 0 && microbatches == workload.microbatches.front()) {
    const std::vector<int> layers(profile.num_stages(), workload.layers_per_stage);
    row.partition = fmt::format("| {} |", name);
    for (const char* schedule : {"1f1b", "zero-bubble"}) {
      for (const double slowdown : {0.0, kTolerance}) {
        const search::ConfigurationChoice choice{schedule, 1, search::Recomputing::as_measured};
        const int measured = halves.plan(choice);
        const auto cut = search::with_best_partition(unknown, choice, layers, (1 + slowdown) * at_maximum.time);
        const int moved = cut ? halves.plan(cut->job, choice) : -1;
        row.partition +=
            fmt::format(" {} -> {} |", halves.saving({measured}, slowdown), halves.saving({moved}, slowdown));
        if (cut && slowdown > 0) row.partition += fmt::format(" {} |", text_of(cut->partition));
      }
    }
  }
  return row;
}

int report() {
  std::vector<Row> rows;
  for (const Workload& workload : kWorkloads) {
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
  fmt::print("\n| workload | 1f1b | 1f1b, + 0.3 % | partition | zero-bubble | zero-bubble, + 0.3 % | partition |\n");
  fmt::print("| --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Row& row : rows) {
    if (!row.partition.empty()) fmt::print("{}\n", row.partition);
  }
  return 0;
}

}  // namespace
}  // namespace perseus::bench

int main() { return perseus::bench::report(); }
