// The shapes of a job's steps: its profile is per stage, its number of microbatches is a fact of each step.
//
// A shape is a number of microbatches. Shapes other than Job::microbatches have inputs of their own: the job's profiles
// with that number.
//
// Input:   the job; an input's text.
// Output:  see each function.
// Errors:  with_shape(): why the schedule has no such steps.
// Cost:    O(pipelines) or O(shapes).
// Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/jobs/job.h"

namespace perseus::jobs {

/// Kept for a job besides its own.
inline constexpr std::size_t kMostShapes = 8;

/// Job::microbatches, then those of Job::shapes.
std::vector<int> shapes_of(const Job& job);

/// Key of the pipeline's input for steps of that shape; empty: none yet.
const std::string& input_for(const Job& job, int pipeline, int shape);
/// True if the input is one of Job::input_of, or the same for another shape.
bool is_in_use(const Job& job, const std::string& input);

/// The same pipeline with such steps.
Result<PipelineShape> with_shape(PipelineShape shape, const JobShape& steps);

/// The job does not know what the rank has seen.
bool is_news(const Job& job, const SeeShape& seen);

/// An input of a shape other than the job's own.
struct ShapeInput {
  JobShape shape;
  std::string of;
};
/// One that is still to be made.
std::optional<ShapeInput> missing_input(const Job& job);

/// The shape whose input that is, if it is another than the job's own, and the input that it was made from.
std::optional<ShapeInput> completed_for(const Job& job, const std::string& input);

/// Every pipeline has a frontier for it.
bool is_planned(const Job& job, int shape);
/// The shape that a plan is for first: the one that prevails if it has frontiers, else that of the plan in force.
int shape_to_plan(const Job& job);

/// The same plan for steps of that shape first; 0: not known, so as it is. Nothing: it has none.
std::optional<PlanDeployed> plan_for(const PlanDeployed& plan, int shape);

}  // namespace perseus::jobs
