// What else would shorten a pipeline: equal stages, layers moved one by one, or another schedule.
//
// Method:  the DAG of each with the usual times of the traced job, without transfers: equal stages keep the sum of all
//          stages; a layer takes the least of a stage's time over its layers, the rest of a stage (embedding, head)
//          stays, and each layer moves from the longest stage to where the pipeline gets shortest; schedules with two
//          stages per rank halve each stage; those that split backward halve it.
// Input:   a job of one stage per rank that runs forward and backward; none for others. Layers of each stage, or none.
// Output:  the traced order first, then those that are shorter, shortest first.
// Cost:    one DAG per schedule.
#pragma once

#include <string>
#include <vector>

#include "evaluation/what_if/slowdown_causes.h"

namespace perseus::what_if {

struct OtherPlan {
  std::string name;
  double pipeline_s = 0;  ///< from the first computation to the last
};

std::vector<OtherPlan> other_plans(const TracedJob& job, const Slowdown& slowdown, const std::vector<int>& layers = {});

}  // namespace perseus::what_if
