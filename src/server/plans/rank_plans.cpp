#include "server/plans/rank_plans.h"

#include <algorithm>
#include <utility>

#include "server/jobs/pipeline_input.h"
#include "server/live/job_access.h"
#include "server/policies/stage_schedule.h"

namespace perseus::plans {

using Reading = live::ScheduleCache::MaxClockShape::Reading;

std::optional<Result<jobs::PlanAnswer>> RankPlans::plan_for(live::LiveJob& live, int rank, std::int64_t have_version) {
  if (live.job.unknown_events > 0) return live::later_version(live.job.id);
  const std::int64_t shown_version = live.shown.version();
  const live::AsShown as_shown(live, live.shown.to_rank(rank));
  if (!live.job.live()) return live::job_is_over(live.job);
  // While the store is late, a rank that registered meanwhile is not known.
  if (shown_version == have_version || !live.has_rank(rank)) return std::nullopt;
  auto schedule = schedule_for(live, *live.job.ranks[rank], shown_version);
  if (!schedule) return std::nullopt;
  if (schedule->kind == jobs::StageSchedule::Kind::plan) {
    const bool waits = latencies_.first_plan_waits(live, clock_.now_s());
    if (std::exchange(live.replan.plan_held_back, waits) != waits) jobs_.index().note(live.job.id);
    if (live.replan.plan_held_back) return std::nullopt;
    live.replan.plan_handed_out = true;
  }
  if (schedule->kind == jobs::StageSchedule::Kind::profiling_window) {
    // Clients that do not report windows ask again after running one, to get the next one.
    const bool has_run = live.windows.has_run(rank, schedule->window) || live.job.reported.contains(rank);
    if (have_version == 0 && has_run) return std::nullopt;
    live.windows.hand_out(rank, schedule->window);
  }
  return jobs::PlanAnswer{std::move(schedule), rank, live.job.ranks[rank]->dp_rank};
}

std::optional<jobs::ClockSpan> RankPlans::clocks_wanted(live::LiveJob& live, const jobs::Rank& rank) {
  const jobs::Job& job = live.job;
  if (job.unknown_events > 0) return std::nullopt;
  const bool highest = live.first_plan_held_back() ||
                       (job.plan && job.plan->version == job.version && job.plan->of(rank.dp_rank).point < 0);
  const auto schedule = highest ? nullptr : schedule_for(live, rank, live.shown.version());
  if (!highest && !schedule) return std::nullopt;
  if (const auto range = highest ? std::nullopt : policies::clock_range(*schedule)) return range;
  const std::vector<int>& supported = job.clock_sets[rank.clock_set];
  if (supported.empty()) return std::nullopt;
  return jobs::ClockSpan{supported.front(), supported.front()};
}

std::shared_ptr<const jobs::StageSchedule> RankPlans::schedule_for(live::LiveJob& live, const jobs::Rank& rank,
                                                                   std::int64_t shown_version) {
  const jobs::Job& job = live.job;
  if (job.version == 0 || job.version != shown_version) return nullptr;  // the plan is being committed
  if (job.version != live.shown.committed_plan && !live::is_provisional(job.version)) return nullptr;
  if (job.plan && job.plan->version == job.version) return plan_schedule(live, rank);
  const bool in_window = !job.windows.empty() &&
                         std::ranges::find(job.profiling->pipelines, rank.dp_rank) != job.profiling->pipelines.end();
  if (in_window && !live.profiling) return nullptr;                             // the profiler is being read
  if (in_window && !live.profiling->takes(job.windows.back())) return nullptr;  // the next window is being found
  auto& schedule =
      live.schedules.at(job.version, {in_window ? -2 : -1, rank.pp_rank, rank.clock_set, rank.instruction_set});
  if (!schedule && in_window) {
    schedule = policies::make_window_schedule(job, rank, live.profiling->schedule());
  } else if (!schedule) {
    if (const auto shape = max_clock_shape(live, rank.dp_rank))
      schedule = policies::make_maximum_clock_schedule(job, rank, *shape);
  }
  return schedule;
}

std::shared_ptr<const jobs::StageSchedule> RankPlans::plan_schedule(live::LiveJob& live, const jobs::Rank& rank) {
  const jobs::Job& job = live.job;
  const jobs::PlanDeployed::Choice& choice = job.plan->of(rank.dp_rank);
  const auto pipeline = choice.point < 0 ? nullptr : live.frontiers.find(choice.input);
  if (choice.point >= 0 && pipeline == nullptr) return nullptr;  // the frontier is being read
  std::vector<policies::OtherShape> others;
  std::vector<live::LoadedFrontiers::Frontier> used;
  for (const jobs::PlanDeployed::OfShape& shape : job.plan->others) {
    const jobs::PlanDeployed::Choice& other = shape.choices[shape.choice_of[rank.dp_rank]];
    if (other.point < 0) continue;
    used.push_back(live.frontiers.find(other.input));
    if (used.back() == nullptr) return nullptr;
    others.push_back({shape.shape, used.back().get(), other.point});
  }
  auto& schedule = live.schedules.at(job.version, {job.plan->choice_of[rank.dp_rank], rank.pp_rank, rank.clock_set,
                                                   pipeline == nullptr ? rank.instruction_set : 0});
  if (!schedule && pipeline != nullptr) {
    schedule = policies::make_plan_schedule(job, rank, *pipeline, others);
  } else if (!schedule) {
    if (const auto shape = max_clock_shape(live, rank.dp_rank))
      schedule = policies::make_maximum_clock_schedule(job, rank, *shape);
  }
  return schedule;
}

std::optional<const jobs::PipelineShape*> RankPlans::max_clock_shape(live::LiveJob& live, int pipeline) {
  if (live.job.spec.shape) return &*live.job.spec.shape;
  const live::ScheduleCache::MaxClockShape& known = live.schedules.max_clock;
  if (known.shape) return &*known.shape;
  if (known.reading == Reading::failed || live.job.input_of[pipeline].empty()) return nullptr;
  if (known.reading == Reading::no) read_max_clock_shape(live, pipeline);
  return std::nullopt;
}

void RankPlans::read_max_clock_shape(live::LiveJob& live, int pipeline) {
  live.schedules.max_clock.reading = Reading::under_way;
  store_.read<std::optional<jobs::PipelineShape>>(
      [key = "input/" + live.job.input_of[pipeline]](store::Store& from) -> Result<std::optional<jobs::PipelineShape>> {
        const auto text = from.blob(key);
        if (!text) return text.error();
        if (!*text) return std::optional<jobs::PipelineShape>();
        const auto input = jobs::parse_input(**text, "input");
        return input ? std::optional(input->shape) : std::nullopt;
      },
      [this, id = live.job.id](const Result<std::optional<jobs::PipelineShape>>& shape) {
        live::LiveJob* const now = jobs_.in_memory(id);
        if (now == nullptr) return;
        if (!shape && shape.error().code == ErrorCode::unavailable) {
          // Perhaps inside max_clock_shape(), so waiting ranks must not be answered from here.
          now->schedules.max_clock.reading = Reading::no;
          now->retry_s = clock_.now_s() + live::kRetryAfter_s;
          return jobs_.set_wake(*now, clock_.now_s());
        }
        now->schedules.max_clock.reading = Reading::failed;
        if (shape && *shape) now->schedules.max_clock.shape = **shape;
        jobs_.shown(*now);
      });
}

}  // namespace perseus::plans
