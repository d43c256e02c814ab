#include "server/savings/job_savings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "planning/model/reference_plans.h"
#include "planning/planner/late_clocks.h"
#include "planning/planner/realize.h"
#include "server/jobs/event_text.h"
#include "server/jobs/job_shapes.h"
#include "server/jobs/pipeline_input.h"
#include "server/policies/stragglers.h"
#include "server/savings/iteration_energy_meter.h"

namespace perseus::savings {

std::optional<jobs::JobView::PerIteration> cost_under(const jobs::PlanDeployed& plan, const jobs::Job& job,
                                                      const policies::Frontiers& frontiers, CountedRanks ranks) {
  // There are few choices and many pipelines.
  struct OfChoice {
    const jobs::CharacterizedPipeline* pipeline;
    int point;
    double scale;
    Seconds switch_latency;  ///< planned with
    Joules computing, computing_all_max;
    Watts waiting;
    Seconds time, all_max_time;
  };
  std::vector<OfChoice> of_choice;
  for (const jobs::PlanDeployed::Choice& choice : plan.choices) {
    const auto found = frontiers.find(choice.input);
    if (choice.point < 0 || found == frontiers.end()) return std::nullopt;
    const jobs::CharacterizedPipeline& pipeline = *found->second;
    const model::FrontierPoint& point = pipeline.frontier.points[choice.point];
    const double scale = policies::scale_of(job, pipeline);
    of_choice.push_back({&pipeline, choice.point, scale, job.switch_latency_of(choice.input),
                         scale * point.effective_energy, scale * pipeline.all_max_effective_energy,
                         scale * pipeline.dag.total_blocking_power(), point.time, pipeline.all_max_time});
  }
  const std::vector<double> degrees = policies::degrees_in_force(job);
  jobs::JobView::PerIteration cost;
  Joules computing;
  Joules computing_all_max;
  Watts waiting;
  std::vector<bool> uncontrolled(job.num_pipelines());
  if (ranks == CountedRanks::as_they_are) {
    for (const int rank : job.uncontrolled) uncontrolled[job.ranks[rank]->dp_rank] = true;
  }
  for (int p = 0; p < job.num_pipelines(); ++p) {
    OfChoice own = of_choice[plan.choice_of[p]];
    if (degrees[p] > 1) {
      const jobs::LimitedPower limited = under_power_limit(*own.pipeline, own.point, degrees[p], own.switch_latency);
      own.computing = own.scale * limited.plan;
      own.computing_all_max = own.scale * limited.all_max;
      own.time = degrees[p] * own.time;
      own.all_max_time = limited.all_max_time;
    }
    if (uncontrolled[p]) {
      own.computing = own.computing_all_max;
      own.time = own.all_max_time;
    }
    computing += own.computing;
    computing_all_max += own.computing_all_max;
    waiting += own.waiting;
    cost.time = std::max(cost.time, own.time);
    cost.all_max_time = std::max(cost.all_max_time, own.all_max_time);
  }
  cost.waiting = waiting;
  cost.energy = computing + waiting * cost.time;
  cost.all_max_energy = computing_all_max + waiting * cost.all_max_time;
  return cost;
}

std::optional<jobs::JobView::PerIteration> iteration_cost(const jobs::Job& job, const policies::Frontiers& frontiers,
                                                          CountedRanks ranks) {
  return job.plan ? cost_under(*job.plan, job, frontiers, ranks) : std::nullopt;
}

namespace {

constexpr double kMostWaits = 0.004;   ///< of an iteration's energy
constexpr double kMostUnsure = 0.003;  ///< likewise, ...
constexpr double kSureStddevs = 2;     ///< ... these standard deviations
constexpr std::int64_t kFewest = IterationEnergyMeter::kFewestThatTell;

/// How well the counters tell what a plan saves, as a share of an iteration's energy. `plan`: null: none yet. Its first
/// iterations differ as those at the highest clock do.
double uncertainty(const jobs::EnergyMeasured& highest, const jobs::EnergyMeasured* plan) {
  if (highest.iterations < kFewest) return 1;
  double plan_j = plan == nullptr ? 0 : plan->stddev_j;
  if (plan != nullptr && plan->iterations < kFewest) {
    plan_j =
        highest.stddev_j * std::sqrt(static_cast<double>(highest.iterations) / static_cast<double>(plan->iterations));
  }
  return kSureStddevs * std::hypot(highest.stddev_j, plan_j) / highest.energy_j;
}

/// Profiles err, but not so much: further away, the profile is of another job.
bool explains(Joules estimated, double measured_j) {
  constexpr double least = 0.8, most = 1.25;
  const double ratio = measured_j / estimated.value();
  return ratio >= least && ratio <= most;
}

/// By how much longer iterations waited under the plan than at the highest clock, for no reason of the plan: it slows
/// the shortest iteration too, and makes none faster.
double longer_waits_s(const jobs::EnergyMeasured& highest, const jobs::EnergyMeasured& plan) {
  if (highest.least_s <= 0 || plan.least_s <= 0) return 0;
  return plan.time_s - highest.time_s - std::max(plan.least_s - highest.least_s, 0.0);
}

}  // namespace

std::optional<jobs::EnergyMeasured> highest_measured(const jobs::Job& job, int shape) {
  const auto highest = job.measured_highest.find(shape), found = job.measured_plan.find(shape);
  if (highest == job.measured_highest.end()) return std::nullopt;
  const jobs::EnergyMeasured* const plan = found == job.measured_plan.end() ? nullptr : &found->second;
  if (uncertainty(highest->second, plan) > kMostUnsure) return std::nullopt;
  jobs::EnergyMeasured alike = highest->second;
  if (plan == nullptr) return alike;
  const double longer_s = longer_waits_s(alike, *plan), more_j = plan->waiting_w * longer_s;
  if (std::abs(more_j) > kMostWaits * alike.energy_j) return std::nullopt;
  alike.energy_j += more_j;
  alike.time_s += longer_s;
  return alike;
}

std::string measurements_differ(const jobs::Job& job) {
  const auto highest = job.measured_highest.find(job.shown_shape());
  const jobs::EnergyMeasured* const plan = job.plan_measured();
  if (plan == nullptr || highest == job.measured_highest.end() || highest_measured(job, job.shown_shape())) return "";
  if (const double unsure = uncertainty(highest->second, plan); unsure > kMostUnsure) {
    return fmt::format("the saving is estimated, since the counters cannot tell it: {}",
                       highest->second.iterations < kFewest
                           ? fmt::format("fewer than {} iterations at the highest clock", kFewest)
                           : fmt::format("the {} iterations at the highest clock and {} under the plan differ so much "
                                         "that it is known within {:.1f} points only",
                                         highest->second.iterations, plan->iterations, 100 * unsure));
  }
  return fmt::format(
      "the saving is estimated, since hosts were not equally busy: iterations at the highest clock took {:.6g} s, the "
      "shortest one {:.6g} s; under the plan {:.6g} and {:.6g} s",
      highest->second.time_s, highest->second.least_s, plan->time_s, plan->least_s);
}

std::string profile_misfit(const jobs::Job& job, const std::optional<jobs::JobView::PerIteration>& cost) {
  if (!job.live() || std::ranges::any_of(policies::degrees_in_force(job), [](double degree) { return degree > 1; }))
    return "";
  const auto highest = job.measured_highest.find(job.shown_shape());
  const bool at_highest = highest != job.measured_highest.end();
  const jobs::EnergyMeasured* const measured = at_highest ? &highest->second : job.plan_measured();
  if (!cost || measured == nullptr) return "";
  const Joules estimated = at_highest ? cost->all_max_energy : cost->energy;
  if (explains(estimated, measured->energy_j)) return "";
  return fmt::format("the profile is of another job: an iteration {} takes {:.6g} J, {:.6g} J by the profile",
                     at_highest ? "at the highest clock" : "under the plan", measured->energy_j, estimated.value());
}

Watts power_with_waits(const jobs::Job& job, Joules energy, Seconds time, Watts waiting) {
  const Seconds period(job.plan && job.plan->budget ? job.plan->budget->paced_iteration_s : 0);
  return period > time ? (energy + waiting * (period - time)) / period : energy / time;
}

std::optional<Watts> measured_power(const jobs::Job& job, Watts waiting) {
  const jobs::EnergyMeasured* const plan = job.plan_measured();
  if (!plan || plan->time_s <= 0) return std::nullopt;
  return power_with_waits(job, Joules(plan->energy_j), Seconds(plan->time_s), waiting);
}

JobPower power_of(const jobs::Job& job, const jobs::JobView::PerIteration& cost) {
  const auto measured = measured_power(job, cost.waiting);
  const auto highest = highest_measured(job, job.shown_shape());
  const Watts planned = power_with_waits(job, cost.energy, cost.time, cost.waiting);
  const Watts all_max = cost.all_max_energy / cost.all_max_time;
  if (!measured) return {planned, all_max};
  if (highest && highest->time_s > 0) return {*measured, Joules(highest->energy_j) / Seconds(highest->time_s), true};
  return {*measured, planned > Watts(0) ? all_max * (*measured / planned) : all_max, true};
}

std::string without_control(const jobs::Job& job, const policies::Frontiers& frontiers) {
  const int rank = job.uncontrolled_rank();
  if (rank < 0) return "";
  std::string text = jobs::text_of_control(rank, job.ranks[rank]->control, job.ranks[rank]->control_reason);
  const auto cost = iteration_cost(job, frontiers);
  if (!cost && job.modeled) return fmt::format("{}; {}", text, job.modeled->text);
  if (!cost) return text;
  const auto now = iteration_cost(job, frontiers, CountedRanks::as_they_are);
  const auto stddev_pct = saving_stddev_pct(*job.plan, job, frontiers);
  return text + fmt::format("; the plan saves {:.2f} %, and would save {:.2f} %{} if all ranks set their clocks",
                            now ? std::max(0.0, now->saved_pct()) : 0.0, cost->saved_pct(),
                            stddev_pct ? fmt::format(" (+- {:.2f} %)", *stddev_pct) : "");
}

std::optional<double> saving_stddev_pct(const jobs::PlanDeployed& plan, const jobs::Job& job,
                                        const policies::Frontiers& frontiers) {
  double sum_pct = 0, sum_j = 0;
  for (const int choice : plan.choice_of) {
    const auto found = frontiers.find(plan.choices[choice].input);
    if (plan.choices[choice].point < 0 || found == frontiers.end()) return std::nullopt;
    const jobs::CharacterizedPipeline& pipeline = *found->second;
    const double highest_j =
        (policies::scale_of(job, pipeline) *
         (pipeline.all_max_effective_energy + pipeline.dag.total_blocking_power() * pipeline.all_max_time))
            .value();
    sum_pct += 100 * pipeline.frontier.points[plan.choices[choice].point].noise.saving_stddev * highest_j;
    sum_j += highest_j;
  }
  return sum_pct > 0 && sum_j > 0 ? std::optional(sum_pct / sum_j) : std::nullopt;
}

std::optional<jobs::JobView::PossibleSaving> possible_saving(const jobs::Job& job,
                                                             const policies::Frontiers& frontiers) {
  if (job.uncontrolled.empty()) return std::nullopt;
  const auto cost = iteration_cost(job, frontiers);
  if (cost) return jobs::JobView::PossibleSaving{cost->saved_pct(), saving_stddev_pct(*job.plan, job, frontiers)};
  if (!job.modeled || !job.modeled->saving_pct) return std::nullopt;
  return jobs::JobView::PossibleSaving{*job.modeled->saving_pct, job.modeled->saving_stddev_pct, true};
}

const jobs::PlanDeployed* plan_of_version(const jobs::Job& job, std::int64_t version) {
  if (job.plan && job.plan->version == version) return &*job.plan;
  const auto earlier = std::ranges::find(job.earlier_plans, version, &jobs::PlanDeployed::version);
  return earlier == job.earlier_plans.end() ? nullptr : &*earlier;
}

namespace {

/// Savings of the counted iterations.
void add_savings(jobs::IterationsCounted& count, const jobs::Job& job, const jobs::JobView::PerIteration& cost) {
  const auto n = static_cast<double>(count.iterations);
  const std::vector<double> degrees = policies::degrees_in_force(job);
  const bool straggles = std::ranges::any_of(degrees, [](double degree) { return degree > 1; });
  const jobs::EnergyMeasured* const plan = job.plan_measured();
  const auto highest = highest_measured(job, job.shown_shape());
  if (plan != nullptr && highest && !straggles) {
    count.saved_j = n * (highest->energy_j - plan->energy_j);
    count.all_max_energy_j = n * highest->energy_j;
    count.measured = true;
  } else {
    count.saved_j = n * (cost.all_max_energy - cost.energy).value();
    count.all_max_energy_j = n * cost.all_max_energy.value();
  }
}

/// Predicted cost of an iteration of that shape under the job's plan of that version, unless ranks have dropped it.
std::optional<jobs::JobView::PerIteration> promised_cost(const jobs::Job& job, std::int64_t version, int shape,
                                                         const policies::Frontiers& frontiers) {
  const jobs::PlanDeployed* const whole = plan_of_version(job, version);
  const auto dropped = [&](const jobs::PlanDeployed::Choice& choice) {
    return job.dropped.contains(std::string(jobs::input_of_frontier(choice.input)));
  };
  const auto plan = whole == nullptr ? std::nullopt : jobs::plan_for(*whole, shape);
  if (!plan || std::ranges::any_of(plan->choices, dropped)) return std::nullopt;
  return cost_under(*plan, job, frontiers, CountedRanks::as_they_are);
}
std::optional<jobs::JobView::PerIteration> promised_cost(const jobs::Job& job, const policies::Frontiers& frontiers) {
  return job.plan ? promised_cost(job, job.plan->version, job.plan->shape, frontiers) : std::nullopt;
}

}  // namespace

bool awaits_frontiers(const jobs::Job& job, const policies::Frontiers& frontiers) {
  return job.plan && std::ranges::any_of(job.plan->choices, [&](const jobs::PlanDeployed::Choice& choice) {
           return choice.point >= 0 && !frontiers.contains(choice.input);
         });
}

std::vector<jobs::IterationsCounted> counted_as_reported(const jobs::Job& job, const policies::Frontiers& frontiers,
                                                         const FollowedIterations& followed) {
  std::vector<jobs::IterationsCounted> counts;
  if (followed.whole().empty() || awaits_frontiers(job, frontiers)) return counts;
  std::map<std::pair<std::int64_t, int>, std::optional<jobs::JobView::PerIteration>> costs;  // by version and shape
  const auto cost_of = [&](const FollowedIterations::Whole& whole) {
    const auto [known, is_new] = costs.try_emplace({whole.version, whole.shape});
    if (is_new) known->second = promised_cost(job, whole.version, whole.shape, frontiers);
    return known->second;
  };
  const bool measures = job.all_measure || followed.measures(job.spec.degrees.world_size());
  for (const FollowedIterations::Whole& whole : followed.whole()) {
    if (whole.iteration <= job.counted_to || whole.version == 0) continue;
    const bool has_energy = whole.energy_j > 0 && !whole.straggles;
    const int shape = whole.shape != 0 ? whole.shape : job.plan->shape;
    const auto highest = highest_measured(job, shape);  // compare like with like
    const bool measured = has_energy && highest;
    const bool may_estimate = !measured && (has_energy || whole.straggles || !measures);
    const auto cost = may_estimate ? cost_of(whole) : std::nullopt;
    if (!measured && (!cost || (has_energy && !explains(cost->energy, whole.energy_j)))) continue;
    if (counts.empty() || counts.back().measured != measured) counts.emplace_back().measured = measured;
    jobs::IterationsCounted& count = counts.back();
    const double all_max_j = measured ? highest->energy_j : cost->all_max_energy.value();
    ++count.iterations;
    count.last_iteration = whole.iteration;
    count.all_max_energy_j += all_max_j;
    count.saved_j += all_max_j - (measured ? whole.energy_j : cost->energy.value());
  }
  return counts;
}

std::optional<jobs::IterationsCounted> first_count(const jobs::Job& job, const policies::Frontiers& frontiers,
                                                   std::int64_t last_iteration, std::int64_t iterations) {
  if (!job.plan || job.counted_to >= 0 || last_iteration < job.plan->from_iteration) return std::nullopt;
  const auto cost = promised_cost(job, frontiers);
  if (!cost) return std::nullopt;
  jobs::IterationsCounted count;
  count.iterations = std::min(iterations, last_iteration - job.plan->from_iteration + 1);
  count.last_iteration = last_iteration;
  add_savings(count, job, *cost);
  return count;
}

std::optional<jobs::IterationsCounted> counted(const jobs::Job& job, const policies::Frontiers& frontiers,
                                               std::int64_t finished) {
  if (job.counted_to < 0 || finished <= job.counted_to) return std::nullopt;
  const auto cost = promised_cost(job, frontiers);
  if (!cost) return std::nullopt;
  jobs::IterationsCounted count;
  count.iterations = finished - job.counted_to;
  count.last_iteration = finished;
  add_savings(count, job, *cost);
  return count;
}

namespace {

/// Ranks by type.
std::vector<int> ranks_of_types(const model::ComputationDag& dag) {
  std::vector<int> ranks(dag.types.size());
  for (const model::Computation& computation : dag.computations) ranks[computation.type] = computation.rank;
  return ranks;
}

/// Power of one accelerator.
double power_w(const model::ComputationDag& dag, int rank, const model::Measurement& option) {
  return (option.energy / option.time).value() / dag.accelerators[rank];
}

/// The same clocks with times and energies under that limit: the device lowers the clocks itself, at once.
model::ComputationDag limited(model::ComputationDag dag, double limit_w) {
  const std::vector<int> ranks = ranks_of_types(dag);
  for (std::size_t t = 0; t < dag.types.size(); ++t) {
    std::vector<model::Measurement>& options = dag.types[t].options;
    // From the lowest clock up: each option's own measurement is still unchanged when it is read.
    std::size_t allowed = options.size() - 1;
    std::vector<std::size_t> runs_as(options.size());
    for (std::size_t o = options.size(); o-- > 0;) {
      if (power_w(dag, ranks[t], options[o]) <= limit_w) allowed = o;
      runs_as[o] = allowed;
    }
    const std::vector<model::Measurement> measured = options;
    for (std::size_t o = 0; o < options.size(); ++o) {
      options[o].time = measured[runs_as[o]].time;
      options[o].energy = measured[runs_as[o]].energy;
    }
  }
  return dag;
}

jobs::LimitedPower between(const jobs::LimitedPower& a, const jobs::LimitedPower& b, double share) {
  return {a.plan + share * (b.plan - a.plan), a.all_max + share * (b.all_max - a.all_max),
          a.all_max_time + share * (b.all_max_time - a.all_max_time)};
}

jobs::LimitedPower find(const jobs::CharacterizedPipeline& pipeline, int point, double degree, Seconds switch_latency) {
  const model::ComputationDag& dag = pipeline.dag;
  std::set<double> different;
  const std::vector<int> ranks = ranks_of_types(dag);
  for (std::size_t t = 0; t < dag.types.size(); ++t) {
    for (const model::Measurement& option : dag.types[t].options) {
      if (option.time > Seconds(0)) different.insert(power_w(dag, ranks[t], option));
    }
  }
  const std::vector<double> limits(different.begin(), different.end());  // increasing
  const model::Plan &plan = pipeline.frontier.points[point].plan, all_max = model::all_maximum_clock(dag);
  // Assumption: its power is unchanged, and its time longer.
  const jobs::LimitedPower unlimited{pipeline.frontier.points[point].effective_energy,
                                     pipeline.all_max_effective_energy, degree * pipeline.all_max_time};
  if (limits.empty()) return unlimited;
  // Times under a limit are those of the means.
  const model::FrontierPoint& of_point = pipeline.frontier.points[point];
  const Seconds wanted = degree * (of_point.time - of_point.noise.lateness);
  const auto planned_at = [&](const model::ComputationDag& of) {
    return planner::LateClocks(of, switch_latency).realize(plan);
  };
  const auto time_at = [&](double limit_w) { return planned_at(limited(dag, limit_w)).time; };
  const auto at = [&](double limit_w) {
    const model::ComputationDag of = limited(dag, limit_w);
    const planner::Realizer::Outcome highest = planner::Realizer(of).realize(all_max);
    return jobs::LimitedPower{planned_at(of).effective_energy, highest.effective_energy, highest.time};
  };
  // Time decreases as the limit rises.
  const auto above = std::ranges::partition_point(limits, [&](double limit_w) { return time_at(limit_w) > wanted; });
  if (above == limits.begin()) {
    const jobs::LimitedPower lowest = at(limits.front());
    return {lowest.plan, lowest.all_max, unlimited.all_max_time};
  }
  if (above == limits.end()) return at(limits.back());
  const Seconds slower = time_at(*(above - 1)), faster = time_at(*above);
  return between(at(*above), at(*(above - 1)), (wanted - faster) / (slower - faster));
}

}  // namespace

jobs::LimitedPower under_power_limit(const jobs::CharacterizedPipeline& pipeline, int point, double degree,
                                     Seconds switch_latency) {
  const auto [known, is_new] = pipeline.limited.try_emplace({point, degree});
  if (is_new) known->second = find(pipeline, point, degree, switch_latency);
  return known->second;
}

}  // namespace perseus::savings
