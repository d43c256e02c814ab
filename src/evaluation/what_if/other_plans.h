// What else would shorten a pipeline: equal stages, or another schedule.
//
// Method:  the DAG of each with the usual times of the traced job, without transfers: equal stages keep the sum of all
//          stages; schedules with two stages per rank halve each stage; those that split backward halve it.
// Input:   a job of one stage per rank that runs forward and backward; none for others.
// Output:  the traced order first, then those that are shorter, shortest first.
// Errors:  none.
// Cost:    one DAG per schedule.
// Threads: pure function.
#pragma once

#include <string>
#include <vector>

#include "evaluation/what_if/slowdown_causes.h"

namespace perseus::what_if {

struct OtherPlan {
  std::string name;
  double pipeline_s = 0;  ///< from the first computation to the last
};

std::vector<OtherPlan> other_plans(const TracedJob& job, const Slowdown& slowdown);

}  // namespace perseus::what_if
