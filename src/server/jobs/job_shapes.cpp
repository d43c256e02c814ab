#include "server/jobs/job_shapes.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/jobs/pipeline_input.h"

namespace perseus::jobs {
namespace {

const JobShape* find(const Job& job, int shape) {
  const auto found = std::ranges::find(job.shapes, shape, &JobShape::microbatches);
  return found == job.shapes.end() ? nullptr : &*found;
}

}  // namespace

std::vector<int> shapes_of(const Job& job) {
  std::vector<int> shapes{job.microbatches};
  for (const JobShape& shape : job.shapes) shapes.push_back(shape.microbatches);
  return shapes;
}

const std::string& input_for(const Job& job, int pipeline, int shape) {
  static const std::string none;
  if (shape == job.microbatches) return job.input_of[pipeline];
  const JobShape* const of = find(job, shape);
  if (of == nullptr) return none;
  const auto input = of->inputs.find(job.input_of[pipeline]);
  return input == of->inputs.end() ? none : input->second;
}

bool is_in_use(const Job& job, const std::string& input) {
  if (std::ranges::find(job.input_of, input) != job.input_of.end()) return true;
  return std::ranges::any_of(job.shapes, [&](const JobShape& shape) {
    return std::ranges::any_of(shape.inputs, [&](const auto& one) { return one.second == input; });
  });
}

bool is_news(const Job& job, const SeeShape& seen) {
  if (!seen.varies.empty()) return job.varies.empty();
  if (!job.varies.empty()) return true;
  if (job.microbatches == 0) return false;  // nothing is known that could be planned
  const JobShape* const known = find(job, seen.microbatches);
  if (known == nullptr && seen.microbatches != job.microbatches) return true;
  if (known != nullptr && !seen.action_table.empty() && known->action_table != seen.action_table) return true;
  return seen.prevails && job.prevailing() != seen.microbatches;
}

Result<PipelineShape> with_shape(PipelineShape shape, const JobShape& steps) {
  if (!shape.action_table.empty() && steps.action_table.empty()) {
    return Error{ErrorCode::invalid_input,
                 fmt::format("the job runs an action table, and there is none of {} microbatches", steps.microbatches)};
  }
  shape.action_table = steps.action_table;
  shape.microbatches = steps.microbatches;
  return shape;
}

std::optional<ShapeInput> missing_input(const Job& job) {
  for (auto shape = job.shapes.rbegin(); shape != job.shapes.rend(); ++shape) {
    for (const std::string& input : job.input_of) {
      if (input.empty() || shape->inputs.contains(input) || shape->why_not.contains(input)) continue;
      return ShapeInput{*shape, input};
    }
  }
  return std::nullopt;
}

std::optional<ShapeInput> completed_for(const Job& job, const std::string& input) {
  if (std::ranges::find(job.input_of, input) != job.input_of.end()) return std::nullopt;
  for (const JobShape& shape : job.shapes) {
    for (const auto& [of, own] : shape.inputs) {
      if (own == input) return ShapeInput{shape, of};
    }
  }
  return std::nullopt;
}

bool is_planned(const Job& job, int shape) {
  for (int p = 0; p < job.num_pipelines(); ++p) {
    const std::string& input = input_for(job, p, shape);
    if (!job.characterized.contains(input) && !job.characterized.contains(quick_frontier_key(input))) return false;
  }
  return true;
}

int shape_to_plan(const Job& job) {
  if (is_planned(job, job.prevailing())) return job.prevailing();
  const bool has_clocks =
      job.plan && std::ranges::any_of(job.plan->choices, [](const auto& c) { return c.point >= 0; });
  return has_clocks ? job.plan->shape : job.microbatches;
}

std::optional<PlanDeployed> plan_for(const PlanDeployed& plan, int shape) {
  if (plan.shape == shape || shape == 0) return plan;
  const auto found = std::ranges::find(plan.others, shape, &PlanDeployed::OfShape::shape);
  if (found == plan.others.end()) return std::nullopt;
  PlanDeployed of_shape = plan;
  of_shape.shape = shape;
  of_shape.choices = found->choices;
  of_shape.choice_of = found->choice_of;
  of_shape.others.clear();
  return of_shape;
}

}  // namespace perseus::jobs
