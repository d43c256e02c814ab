#include "planning/model/run_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace perseus::model {
namespace {

Error invalid(const TracedPlan& plan, const std::string& what) {
  return {ErrorCode::invalid_input, fmt::format("plan {}: {}", plan.id, what)};
}

Action action_of(int stage, const TracedComputation& c) { return {c.instruction, stage, c.microbatch}; }

Status check_numbers(const TracedPlan& plan) {
  const auto positive = [](double value) { return std::isfinite(value) && value > 0; };
  if (!positive(plan.iteration_time.value()))
    return invalid(plan, fmt::format("iteration time {} s; must be > 0", plan.iteration_time.value()));
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    if (!positive(plan.energy[s].value()))
      return invalid(plan, fmt::format("stage {}: energy {} J; must be > 0", s, plan.energy[s].value()));
    if (!std::isfinite(plan.loading[s].value()) || plan.loading[s] < Seconds(0))
      return invalid(plan, fmt::format("stage {}: loading {} s; must be >= 0", s, plan.loading[s].value()));
    for (const TracedComputation& c : plan.stages[s]) {
      if (is_constant_time(c.instruction))
        return invalid(plan, fmt::format("{}: only computations whose clock was set belong in a trace",
                                         text_of(action_of(static_cast<int>(s), c))));
      if (!positive(c.time.value()) || c.clock <= Megahertz(0))
        return invalid(plan, fmt::format("{}: {} s at {} MHz; both must be > 0",
                                         text_of(action_of(static_cast<int>(s), c)), c.time.value(), c.clock.value()));
    }
  }
  return Ok{};
}

Status check_order(const TracedPlan& first, const TracedPlan& plan) {
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const auto& expected = first.stages[s];
    const auto& found = plan.stages[s];
    if (found.size() != expected.size())
      return invalid(plan, fmt::format("stage {} ran {} computations, in plan {} {}; must be equal", s, found.size(),
                                       first.id, expected.size()));
    for (std::size_t i = 0; i < found.size(); ++i) {
      const Action here = action_of(static_cast<int>(s), found[i]), there = action_of(static_cast<int>(s), expected[i]);
      if (!(here == there))
        return invalid(plan, fmt::format("computation {} of stage {} is {}, in plan {} it is {}; all plans must run in "
                                         "the same order",
                                         i, s, text_of(here), first.id, text_of(there)));
    }
  }
  return Ok{};
}

}  // namespace

Joules TracedPlan::total_energy() const {
  Joules total;
  for (const Joules e : energy) total += e;
  return total;
}

Schedule RunTrace::schedule() const {
  Schedule schedule;
  schedule.name = "traced";
  schedule.num_stages = num_stages();
  for (int s = 0; s < num_stages(); ++s) {
    auto& rank = schedule.ranks.emplace_back();
    for (const TracedComputation& c : plans.front().stages[s]) {
      rank.push_back(action_of(s, c));
      schedule.num_microbatches = std::max(schedule.num_microbatches, c.microbatch + 1);
    }
  }
  return schedule;
}

Status RunTrace::validate() const {
  if (plans.empty()) return Error{ErrorCode::invalid_input, "no plans; at least one is needed"};
  for (std::size_t p = 0; p < plans.size(); ++p) {
    const TracedPlan& plan = plans[p];
    if (p > 0 && plans[p - 1].id >= plan.id)
      return invalid(plan, fmt::format("follows plan {}; ids must increase", plans[p - 1].id));
    const std::size_t stages = plans.front().stages.size();
    if (plan.stages.size() != stages || plan.energy.size() != stages || plan.loading.size() != stages || stages == 0)
      return invalid(
          plan, fmt::format("has {} stages, {} energies, {} loading times; each must be {}, as in plan {}",
                            plan.stages.size(), plan.energy.size(), plan.loading.size(), stages, plans.front().id));
    if (Status status = check_numbers(plan); !status) return status;
    if (Status status = check_order(plans.front(), plan); !status) return status;
  }
  return schedule().validate();
}

}  // namespace perseus::model
