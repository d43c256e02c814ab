// Plans to draw, as they run with a switch latency.
//
// Problem: pictures and traces draw each computation at the time and energy of its own option. With a switch latency it
//          runs in part at the clock of the computation before it.
// Input:   a valid DAG, plans that fit it, the switch latency that they were made for.
// Output:  a DAG with the same computations. Without a switch latency, it is the same DAG with the same plans. With
//          one, each computation has a type of its own with an option for each plan: its clock, and the time and energy
//          that the checker simulates (planning/checker/plan_run.h).
// Cost:    one simulation per plan.
// Threads: one.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "io/report/report.h"

namespace perseus::cli {

class DrawnPlans {
 public:
  DrawnPlans(const model::ComputationDag& dag, const std::vector<report::DrawnPlan>& plans, Seconds switch_latency);

  [[nodiscard]] const model::ComputationDag& dag() const { return dag_; }
  /// In the order given; valid as long as this object.
  [[nodiscard]] std::vector<report::DrawnPlan> plans() const;

 private:
  model::ComputationDag dag_;
  std::vector<std::pair<std::string, model::Plan>> plans_;
};

/// Everything at maximum clock, and the default plan.
DrawnPlans default_drawing(const model::ComputationDag& dag, const model::Frontier& frontier,
                           const model::DefaultRule& rule, Seconds switch_latency);

}  // namespace perseus::cli
