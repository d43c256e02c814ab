#include "server/policies/stage_schedule.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "server/jobs/pipeline_input.h"
#include "server/policies/deployment.h"

namespace perseus::policies {
namespace {

/// A rank's stages in ascending order are its chunks 0, 1, ...
class Chunks {
 public:
  void add(int stage) { stages_.insert(stage); }
  [[nodiscard]] int of(int stage) const {
    return static_cast<int>(std::distance(stages_.begin(), stages_.find(stage)));
  }

 private:
  std::set<int> stages_;
};

/// `into`: a StageSchedule or one of its shapes.
template <class Clocks>
void add_planned_clocks(const jobs::CharacterizedPipeline& pipeline, int point, int stage_rank,
                        const std::vector<int>& supported, Clocks& into) {
  const model::Plan& plan = pipeline.frontier.points[point].plan;
  const std::vector<int>& own = pipeline.dag.rank_order[stage_rank];
  Chunks chunks;
  for (const int computation : own) chunks.add(pipeline.dag.type_of(computation).stage);
  for (const int computation : own) {
    const model::ComputationType& type = pipeline.dag.type_of(computation);
    const Megahertz clock = type.options[plan[computation]].clock;
    if (clock == Megahertz(0)) continue;
    into.clocks.push_back({type.instruction, supported_clock(clock, supported)});
    into.computations.push_back({pipeline.dag.computations[computation].microbatch, chunks.of(type.stage)});
  }
}

/// The highest supported clock, under a budget at most the ceiling.
Megahertz highest_clock(const jobs::Job& job, const std::vector<int>& supported) {
  const bool limited = job.plan && job.plan->version == job.version && job.plan->budget;
  const int most = limited ? job.plan->budget->ceiling_mhz : supported.empty() ? 0 : supported.front();
  for (const int clock : supported) {
    if (clock <= most) return Megahertz(clock);
  }
  return Megahertz(supported.empty() ? most : supported.back());
}

std::vector<formats::ClockedInstruction> maximum_clocks(const jobs::Job& job, const jobs::Rank& rank,
                                                        const jobs::PipelineShape* shape) {
  const std::vector<int>& supported = job.clock_sets[rank.clock_set];
  const Megahertz highest = highest_clock(job, supported);
  std::vector<formats::ClockedInstruction> clocks;
  if (const auto& own = job.instruction_sets[rank.instruction_set]; !own.empty()) {
    for (const std::string& instruction : own) {
      const auto known = model::instruction_named(instruction);
      if (!known || !model::is_constant_time(*known)) clocks.push_back({instruction, highest});
    }
    return clocks;
  }
  if (shape == nullptr) return clocks;
  const Result<model::Schedule> schedule = jobs::schedule_of(*shape, job.spec.degrees.pp);
  if (!schedule || rank.pp_rank >= schedule->num_ranks()) return clocks;
  for (const model::Action& action : schedule->ranks[rank.pp_rank]) {
    if (!model::is_constant_time(action.instruction))
      clocks.push_back({std::string(name_of(action.instruction)), highest});
  }
  return clocks;
}

/// All members except the clocks.
std::shared_ptr<jobs::StageSchedule> schedule_of_rank(const jobs::Job& job, const jobs::Rank& rank,
                                                      jobs::StageSchedule::Kind kind) {
  auto schedule = std::make_shared<jobs::StageSchedule>();
  schedule->kind = kind;
  schedule->version = job.version;
  schedule->pipeline = rank.dp_rank;
  schedule->stage_rank = rank.pp_rank;
  schedule->instructions = job.instruction_sets[rank.instruction_set];
  const bool planned = job.plan && job.plan->version == job.version;
  schedule->from_iteration = planned ? job.plan->from_iteration : 0;
  if (planned) schedule->budget = job.plan->budget;
  schedule->reason = planned               ? job.plan->reason
                     : job.windows.empty() ? "profiling has ended, planning is under way"
                                           : "online profiling";
  return schedule;
}

}  // namespace

Megahertz supported_clock(Megahertz planned, const std::vector<int>& supported) {
  if (supported.empty()) return planned;
  // Highest first: the first clock below the planned one ends the range.
  const auto slower = std::ranges::lower_bound(supported, planned.value() - 1, std::greater{});
  return Megahertz(slower == supported.begin() ? supported.front() : *(slower - 1));
}

std::optional<jobs::ClockSpan> clock_range(const jobs::StageSchedule& schedule) {
  if (schedule.clock_range) return schedule.clock_range;
  std::optional<jobs::ClockSpan> range;
  for (const formats::ClockedInstruction& clocked : schedule.clocks) {
    const int mhz = clocked.clock.value();
    if (mhz <= 0) continue;
    range = range ? jobs::ClockSpan{std::min(range->least_mhz, mhz), std::max(range->most_mhz, mhz)}
                  : jobs::ClockSpan{mhz, mhz};
  }
  schedule.clock_range = range;
  return range;
}

std::shared_ptr<const jobs::StageSchedule> make_plan_schedule(const jobs::Job& job, const jobs::Rank& rank,
                                                              const jobs::CharacterizedPipeline& pipeline,
                                                              const std::vector<OtherShape>& others) {
  const int point = job.plan->of(rank.dp_rank).point;
  auto schedule = schedule_of_rank(job, rank, jobs::StageSchedule::Kind::plan);
  add_planned_clocks(pipeline, point, rank.pp_rank, job.clock_sets[rank.clock_set], *schedule);
  schedule->microbatches = job.plan->shape;
  for (const OtherShape& other : others) {
    jobs::StageSchedule::OfShape& shape = schedule->shapes.emplace_back();
    shape.microbatches = other.microbatches;
    shape.iteration_time = other.pipeline->frontier.points[other.point].time;
    shape.all_max_time = other.pipeline->all_max_time;
    add_planned_clocks(*other.pipeline, other.point, rank.pp_rank, job.clock_sets[rank.clock_set], shape);
  }
  schedule->iteration_time = pipeline.frontier.points[point].time;
  schedule->all_max_time = pipeline.all_max_time;
  // Rounded, since a number that was read from the job's log may differ in its last bit.
  const auto rounded = [](const std::optional<double>& percent) {
    return percent ? std::optional(std::round(100 * *percent) / 100) : std::nullopt;
  };
  schedule->saving_pct = rounded(job.plan->saving_pct);
  schedule->saving_stddev_pct = rounded(job.plan->saving_stddev_pct);
  schedule->only_possible = !job.uncontrolled.empty();
  schedule->slower_on_purpose = *schedule->iteration_time > time_without_straggler(pipeline);
  return schedule;
}

std::shared_ptr<const jobs::StageSchedule> make_maximum_clock_schedule(const jobs::Job& job, const jobs::Rank& rank,
                                                                       const jobs::PipelineShape* shape) {
  auto schedule = schedule_of_rank(job, rank, jobs::StageSchedule::Kind::maximum_clock);
  if (job.modeled && job.modeled->saving_pct && !job.uncontrolled.empty()) {
    schedule->saving_pct = job.modeled->saving_pct;
    schedule->saving_stddev_pct = job.modeled->saving_stddev_pct;
    schedule->only_possible = schedule->modeled = true;
  }
  schedule->clocks = maximum_clocks(job, rank, shape);
  schedule->microbatches = job.microbatches;
  return schedule;
}

std::shared_ptr<const jobs::StageSchedule> make_window_schedule(const jobs::Job& job, const jobs::Rank& rank,
                                                                const model::Schedule& actions) {
  const jobs::WindowHandedOut& window = job.windows.back();
  auto schedule = schedule_of_rank(job, rank, jobs::StageSchedule::Kind::profiling_window);
  schedule->window = window.number;
  schedule->iterations = window.iterations;
  schedule->from_iteration = window.from_iteration;
  schedule->microbatches = window.microbatches != 0 ? window.microbatches : actions.num_microbatches;
  const std::vector<model::Action>& own = actions.ranks[rank.pp_rank];
  Chunks chunks;
  for (const model::Action& action : own) chunks.add(action.stage);
  for (std::size_t a = 0; a < own.size(); ++a) {
    if (model::is_constant_time(own[a].instruction)) continue;
    const Megahertz clock(job.profiling->keeps_clocks ? 0 : window.clocks_mhz[rank.pp_rank][a]);
    schedule->clocks.push_back(
        {std::string(name_of(own[a].instruction)),
         clock == Megahertz(0) ? clock : supported_clock(clock, job.clock_sets[rank.clock_set])});
    schedule->computations.push_back({own[a].microbatch, chunks.of(own[a].stage)});
  }
  return schedule;
}

}  // namespace perseus::policies
