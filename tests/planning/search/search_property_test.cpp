// Configurations and their union on random pipelines: the union is never above a member, every plan in it passes the
// independent checker, its bound holds against brute force, and the best recomputation is the best of all that fit.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "oracles/brute_force.h"
#include "oracles/dice.h"
#include "oracles/instances.h"
#include "planning/checker/certificate_check.h"
#include "planning/checker/verify_plan.h"
#include "planning/checker/verify_union.h"
#include "planning/model/make_schedule.h"
#include "planning/planner/exact.h"
#include "planning/planner/lower_bound.h"
#include "planning/search/configuration.h"
#include "planning/search/repartition.h"
#include "planning/search/stage_count.h"
#include "planning/search/union_frontier.h"

namespace perseus::checker {
namespace {

using testing::BruteForce;
using testing::Dice;
using testing::ShrinkingDice;

/// Forward and backward only; the backward takes more time and energy than its forward at every clock.
model::Profile random_job_profile(Dice& dice, int stages, int most_clocks) {
  model::Profile profile;
  profile.accelerators.assign(stages, dice.roll(1, 2));
  const int clocks = dice.roll(1, most_clocks);
  for (int stage = 0; stage < stages; ++stage) {
    model::ProfileEntry forward{stage, "forward", {}}, backward{stage, "backward", {}};
    for (int c = 0; c < clocks; ++c) {
      const double time = dice.real(0.5, 1) * (1 + 0.2 * c), energy = time * dice.real(50, 100);
      const double more = dice.real(0.3, 2);
      forward.measurements.push_back({Megahertz(1400 - 15 * c), Seconds(time), Joules(energy), {}, {}, 1});
      backward.measurements.push_back(
          {Megahertz(1400 - 15 * c), Seconds(time * (1 + more)), Joules(energy * (1 + more)), {}, {}, 1});
    }
    profile.entries.push_back(std::move(forward));
    profile.entries.push_back(std::move(backward));
  }
  return profile;
}

search::SearchedJob random_job(Dice& dice, int most_stages, int most_microbatches, int most_clocks) {
  search::SearchedJob job;
  job.profile = random_job_profile(dice, dice.roll(1, most_stages), most_clocks);
  job.microbatches = dice.roll(1, most_microbatches);
  // No more than any forward draws, so that less computation never needs more energy.
  job.costs.blocking_power = Watts(dice.roll(0, 50) / double(job.profile.accelerators[0]));
  job.measured_with = dice.one_in(2) ? search::MeasuredWith::recomputation : search::MeasuredWith::no_recomputation;
  if (dice.one_in(3)) job.input_gradient_fraction = dice.real(0.2, 0.8);
  return job;
}

std::vector<search::Configuration> all_configurations(const search::SearchedJob& job) {
  std::vector<search::Configuration> made;
  for (const std::string& schedule : model::schedule_names()) {
    const int fixed = model::chunks_fixed_by(schedule);
    for (const search::Recomputing recomputing : {search::Recomputing::as_measured, search::Recomputing::best}) {
      Result<search::Configuration> one = search::configure(job, {schedule, fixed == 0 ? 2 : fixed, recomputing});
      if (one) made.push_back(*std::move(one));
    }
  }
  return made;
}

planner::PlannerOptions few_deadlines() {
  planner::PlannerOptions options;
  options.deadlines = 20;
  return options;
}

RC_GTEST_PROP(Search, TheUnionIsNeverAboveAMemberAndVerifies, ()) {
  ShrinkingDice dice;
  const search::SearchedJob job = random_job(dice, 3, 4, 4);
  const std::vector<search::Configuration> configurations = all_configurations(job);
  RC_ASSERT(configurations.size() >= 2u);  // 1f1b and gpipe always are
  std::vector<model::Frontier> frontiers;
  for (const search::Configuration& c : configurations) {
    RC_ASSERT(c.dag.validate().ok());
    frontiers.push_back(planner::plan_exact(c.dag, few_deadlines()));
    const planner::LowerBoundResult proof =
        planner::compute_lower_bound(c.dag, deadlines_to_certify(frontiers.back().bound));
    const Verification v = verify_frontier(c.dag, frontiers.back(), proof.certificates);
    RC_ASSERT((v.ok() ? "" : v.findings[0].message) == "");
    RC_ASSERT(c.dag.total_blocking_power() == configurations.front().dag.total_blocking_power());
  }
  std::vector<const model::Frontier*> members;
  for (const model::Frontier& frontier : frontiers) members.push_back(&frontier);
  const Watts waiting = configurations.front().dag.total_blocking_power();
  const search::UnionFrontier all = search::union_of(members, waiting);
  std::vector<UnionClaim> claims;
  for (std::size_t i = 0; i < all.origins.size(); ++i) {
    const model::FrontierPoint& p = all.frontier.points[i];
    claims.push_back(
        {all.origins[i].configuration, all.origins[i].point, p.time, p.energy, p.effective_energy, p.bound});
    RC_ASSERT(p.bound <= p.energy * (1 + 1e-9));
  }
  const std::vector<std::string> findings = verify_union(members, waiting, claims);
  RC_ASSERT((findings.empty() ? "" : findings.front()) == "");
  for (const model::Frontier* member : members) {
    for (const model::FrontierPoint& point : member->points) {
      RC_ASSERT(std::ranges::any_of(all.frontier.points, [&](const model::FrontierPoint& best) {
        // Up to rounding, as sums of the same energies in another order differ.
        return best.time <= point.time && best.effective_energy <= point.effective_energy + 1e-12 * point.energy;
      }));
    }
  }
}

RC_GTEST_PROP(Search, TheBoundOfTheUnionHoldsAgainstEveryPlanOfEveryMember, ()) {
  ShrinkingDice dice;
  const search::SearchedJob job = random_job(dice, 2, 2, 2);
  std::vector<model::Frontier> frontiers;
  std::vector<BruteForce> all_plans;
  for (const search::Configuration& c : all_configurations(job)) {
    if (testing::num_plans(c.dag) > 5000) continue;
    frontiers.push_back(planner::plan_exact(c.dag, few_deadlines()));
    all_plans.emplace_back(c.dag);
  }
  RC_PRE(!frontiers.empty());
  std::vector<const model::Frontier*> members;
  for (const model::Frontier& frontier : frontiers) members.push_back(&frontier);
  const Watts waiting = job.costs.blocking_power * double(job.profile.accelerators[0] * job.profile.num_stages());
  for (const model::FrontierPoint& point : search::union_of(members, waiting).frontier.points) {
    for (const BruteForce& plans : all_plans) {
      if (plans.pareto_set().front().time > point.time) continue;
      const Joules optimum = plans.best_at(point.time * (1 + 1e-12)) + waiting * point.time;
      RC_ASSERT(point.bound <= optimum * (1 + 1e-9));
    }
  }
}

RC_GTEST_PROP(Search, TheBestRecomputationIsTheBestOfAllThatFit, ()) {
  ShrinkingDice dice;
  search::SearchedJob job = random_job(dice, 3, 4, 3);
  const int stages = job.profile.num_stages();
  for (int s = 0; s < stages; ++s) {
    job.memory.push_back({dice.real(1, 3), dice.real(0.5, 2), dice.real(0, 0.5), {}});
    if (dice.one_in(2)) job.memory.back().recompute_gib = dice.real(0, 0.5);
  }
  job.memory_limit_gib = dice.real(3, 9);
  const std::string schedule = std::array{"1f1b", "gpipe", "zero-bubble"}[dice.roll(0, 2)];
  const model::Schedule made = model::make_schedule(schedule, {stages, job.microbatches, 1}).value();
  const Result<search::Configuration> best = search::configure(job, {schedule, 1, search::Recomputing::best});
  // Every subset of stages, by the memory model alone.
  int fitting = 0;
  for (int subset = 0; subset < 1 << stages; ++subset) {
    std::vector<bool> recomputes(stages);
    for (int s = 0; s < stages; ++s) recomputes[s] = (subset >> s & 1) != 0;
    if (std::ranges::max(search::peak_memory_gib(made, job.memory, recomputes)) > *job.memory_limit_gib) continue;
    ++fitting;
    RC_ASSERT(best.ok());
    // Another job whose choice is exactly this subset, so that it can be planned.
    search::SearchedJob other = job;
    other.memory_limit_gib.reset();
    const model::LowerBound least = planner::compute_lower_bound(best->dag).bound;
    for (int s = 0; s < stages; ++s) RC_ASSERT(best->recomputes[s] <= recomputes[s]);
    for (const search::Recomputing whole : {search::Recomputing::all, search::Recomputing::none}) {
      const bool is_whole =
          std::ranges::all_of(recomputes, [&](bool r) { return r == (whole == search::Recomputing::all); });
      if (!is_whole) continue;
      const search::Configuration same = search::configure(other, {schedule, 1, whole}).value();
      const model::LowerBound bound = planner::compute_lower_bound(same.dag).bound;
      for (const model::BoundVertex& v : bound.vertices) {
        RC_ASSERT(least.t_min() <= v.time * (1 + 1e-9));
        RC_ASSERT(least.at(v.time) <= v.effective_energy + 1e-9 * Joules(1e3));
      }
    }
  }
  if (fitting == 0) RC_ASSERT(!best.ok());
}

/// Memory of `job`'s stages with so many layers each, the head on the last one.
search::LayerMemory random_layer_memory(Dice& dice, std::vector<int> layers) {
  const model::StageMemory layer{dice.real(0.5, 2), dice.real(0.1, 1), dice.real(0, 0.2), {}};
  const double embedding = dice.real(0, 2), head = dice.real(0, 2);
  return {std::move(layers), [=](const std::vector<int>& each) -> Result<std::vector<model::StageMemory>> {
            std::vector<model::StageMemory> memory;
            for (const int count : each) {
              memory.push_back(
                  {count * layer.weights_gib, count * layer.activations_gib, count * layer.checkpoint_gib, {}});
            }
            memory.front().weights_gib += embedding;
            memory.back().activations_gib += head;
            return memory;
          }};
}

struct DividedJob {
  search::SearchedJob job;
  std::vector<int> layers;  ///< of each stage, without the head
  bool has_head = false;
};

DividedJob random_divided_job(Dice& dice) {
  DividedJob divided{random_job(dice, 3, 4, 2), {}, false};
  search::SearchedJob& job = divided.job;
  for (int s = 0; s < job.profile.num_stages(); ++s) divided.layers.push_back(dice.roll(1, 3));
  RC_ASSERT(search::set_memory(random_layer_memory(dice, divided.layers), job).ok());
  job.memory_limit_gib = dice.real(3, 15);
  divided.has_head = search::layers_of(job.profile, divided.layers).value().back().kind == model::LayerKind::head;
  return divided;
}

/// Transformer layers per stage.
std::vector<int> layers_of(const partitioner::Partition& partition, bool has_head) {
  std::vector<int> layers;
  for (int s = 0; s < partition.num_stages(); ++s) layers.push_back(partition.layers_of(s));
  layers.back() -= has_head ? 1 : 0;
  return layers;
}

/// Every way to give `layers` to `stages`, at least one to each.
void list_divisions(int layers, int stages, std::vector<int>& begun, std::vector<std::vector<int>>& all) {
  if (stages == 1) {
    all.push_back(begun);
    all.back().push_back(layers);
    return;
  }
  for (int first = 1; first <= layers - stages + 1; ++first) {
    begun.push_back(first);
    list_divisions(layers - first, stages - 1, begun, all);
    begun.pop_back();
  }
}

/// Whether some partition fits, if a stage may stop recomputing or not.
bool some_partition_fits(const DividedJob& divided, const search::ConfigurationChoice& choice) {
  const search::SearchedJob& job = divided.job;
  const int stages = job.profile.num_stages();
  const model::Schedule schedule = model::make_schedule(choice.schedule, {stages, job.microbatches, 1}).value();
  std::vector<std::vector<int>> all;
  std::vector<int> begun;
  list_divisions(std::accumulate(divided.layers.begin(), divided.layers.end(), 0), stages, begun, all);
  return std::ranges::any_of(all, [&](const std::vector<int>& layers) {
    const auto peaks = [&](bool recomputes) {
      return search::peak_memory_gib(schedule, job.layer_memory->of(layers).value(),
                                     std::vector<bool>(stages, recomputes));
    };
    std::vector<double> least = peaks(job.measured_with == search::MeasuredWith::recomputation);
    if (choice.recomputing == search::Recomputing::best) {
      std::ranges::transform(peaks(false), peaks(true), least.begin(),
                             [](double a, double b) { return std::min(a, b); });
    }
    return std::ranges::max(least) <= *job.memory_limit_gib;
  });
}

/// The highest peak of a rank, computed from the layers of its stages.
double peak_gib(const search::SearchedJob& job, const search::Configuration& c, const std::vector<int>& layers) {
  const model::Schedule schedule =
      model::make_schedule(c.choice.schedule, {job.profile.num_stages(), job.microbatches, c.choice.chunks}).value();
  return std::ranges::max(search::peak_memory_gib(schedule, job.layer_memory->of(layers).value(), c.recomputes));
}

RC_GTEST_PROP(Search, NoConfigurationExceedsItsLimitUnderItsPartition, ()) {
  ShrinkingDice dice;
  const DividedJob divided = random_divided_job(dice);
  const search::SearchedJob& job = divided.job;
  for (const search::Configuration& c : all_configurations(job)) {
    const auto layers = search::with_stages(divided.layers, job.profile.num_stages() * c.choice.chunks);
    if (layers) RC_ASSERT(peak_gib(job, c, *layers) <= *job.memory_limit_gib * (1 + 1e-9));
  }
  const std::string schedule = std::array{"1f1b", "gpipe", "zero-bubble"}[dice.roll(0, 2)];
  for (const search::Recomputing recomputing : {search::Recomputing::as_measured, search::Recomputing::best}) {
    const search::ConfigurationChoice choice{schedule, 1, recomputing};
    const auto found = search::with_best_partition(job, choice, divided.layers, Seconds(1e3));
    // A head alone on a stage may not be possible for another reason.
    if (!divided.has_head) RC_ASSERT(found.ok() == some_partition_fits(divided, choice));
    if (!found) continue;
    const search::Configuration c = search::configure(found->job, choice).value();
    RC_ASSERT(peak_gib(job, c, layers_of(found->partition, divided.has_head)) <= *job.memory_limit_gib * (1 + 1e-9));
  }
}

}  // namespace
}  // namespace perseus::checker
