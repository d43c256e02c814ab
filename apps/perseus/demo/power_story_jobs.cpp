#include "demo/power_story_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "planning/checker/plan_run.h"
#include "planning/model/reference_plans.h"
#include "simulation/site_emulator/job_kind.h"

namespace perseus::cli {
namespace {

struct Shape {
  const char* name;
  const char* schedule;
  int stages, replicas;
};
constexpr std::array<Shape, 3> kShapes{
    {{"pipeline", "1f1b", 4, 1}, {"interleaved", "interleaved-1f1b", 4, 1}, {"replicas", "1f1b", 1, 2}}};

DemoOptions options_of(const Shape& shape, DemoOptions options, int first_gpu) {
  options.schedule = shape.schedule;
  options.stages = shape.stages;
  options.replicas = shape.replicas;
  options.first_gpu = first_gpu;
  options.job_name = shape.name;
  return options;
}

}  // namespace

StoryJob::StoryJob(std::string shape_name, DemoOptions all, DemoJob made, DemoScratch folder, DemoStage& stage,
                   DemoServer& server)
    : shape(std::move(shape_name)),
      options(std::move(all)),
      job(std::move(made)),
      scratch(std::move(folder)),
      gpus(options, job, scratch),
      training(options, job, scratch, stage, server, gpus) {}

Seconds StoryJob::longest_computation() const {
  Seconds longest;
  for (const model::ComputationType& type : job.dag.types) {
    for (const model::Measurement& m : type.options) longest = std::max(longest, m.time);
  }
  return longest;
}

Watts StoryJob::all_max_power() const {
  const checker::PlanRun run = checker::run_plan(job.dag, model::all_maximum_clock(job.dag));
  return options.replicas * (run.energy / run.makespan);
}

Status StoryJob::look(int limit_ms) {
  while (true) {
    const auto iteration = training.poll(limit_ms);
    if (!iteration) return Error{iteration.error().code, fmt::format("{}: {}", shape, iteration.error().message)};
    if (!*iteration) return Ok{};
    const replay::RankReport& first = (*iteration)->workers.front();
    iterations.push_back({first.start_s, first.end_s});
    follows_plan = training.follows_plan(**iteration, 0);
    limit_ms = 0;
  }
}

void StoryJob::kill() {
  killed = true;
  training.kill();
  gpus.kill_helpers();
}

std::vector<StoryIteration> StoryJob::between(double from_s, double until_s) const {
  std::vector<StoryIteration> found;
  for (const StoryIteration& iteration : iterations) {
    if (iteration.start_s >= from_s && iteration.end_s <= until_s) found.push_back(iteration);
  }
  return found;
}

Result<StoryJobs> story_jobs(const DemoOptions& options, const DemoScratch& scratch, DemoStage& stage,
                             DemoServer& server) {
  StoryJobs jobs;
  int gpus = 0;
  for (const Shape& shape : kShapes) {
    DemoOptions own = options_of(shape, options, gpus);
    auto job = demo_job(own);
    if (!job) return job.error();
    gpus += job->dag.num_ranks() * shape.replicas;
    auto folder = DemoScratch::create(scratch.file(shape.name));
    if (!folder) return folder.error();
    jobs.push_back(
        std::make_unique<StoryJob>(shape.name, std::move(own), *std::move(job), *std::move(folder), stage, server));
  }
  return jobs;
}

Watts swing_reserve(const StoryJobs& jobs, Seconds window) {
  Watts reserve;
  for (const auto& job : jobs) {
    site_emulator::JobKind kind(job->job.dag, job->job.all_max_time);
    Watts greatest;
    for (const model::Plan& plan : {model::all_maximum_clock(job->job.dag), model::minimum_energy_plan(job->job.dag)}) {
      greatest = std::max(greatest, kind.swing(kind.way(plan), window).above);
    }
    reserve += job->options.replicas * greatest;
  }
  return reserve;
}

}  // namespace perseus::cli
