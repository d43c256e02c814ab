#include "simulation/site_emulator/switched_iteration.h"

#include <algorithm>

namespace perseus::site_emulator {
namespace {

/// The latest plan that the rank has at that time.
std::size_t plan_at(std::span<const PlanFrom> plans, int rank, double time_s) {
  std::size_t k = plans.size() - 1;
  while (k > 0 && !plans[k].from_s.empty() && plans[k].from_s[rank] > time_s) --k;
  return k;
}

}  // namespace

IterationRunner::IterationRunner(const model::ComputationDag& dag) : ranks_(dag.num_ranks()) {
  std::vector<int> first_of_type;
  for (const model::ComputationType& type : dag.types) {
    first_of_type.push_back(static_cast<int>(options_.size()));
    for (const model::Measurement& m : type.options) {
      options_.push_back({m.time.value(), m.time > Seconds(0) ? (m.energy / m.time).value() : 0});
    }
  }
  const std::size_t count = dag.computations.size();
  std::vector<std::vector<Before>> before(count);
  for (const model::Dependency& d : dag.dependencies) before[d.after].push_back({d.before, d.latency.value()});
  for (const std::vector<int>& order : dag.rank_order) {
    for (std::size_t k = 1; k < order.size(); ++k) before[order[k]].push_back({order[k - 1], 0});
  }
  first_before_.push_back(0);
  for (std::size_t i = 0; i < count; ++i) {
    rank_.push_back(dag.computations[i].rank);
    waiting_w_.push_back(dag.blocking_power_of(static_cast<int>(i)).value());
    first_option_.push_back(first_of_type[dag.computations[i].type]);
    before_.insert(before_.end(), before[i].begin(), before[i].end());
    first_before_.push_back(static_cast<int>(before_.size()));
  }
  end_s_.resize(count);
}

SwitchedIteration IterationRunner::run(std::span<const PlanFrom> plans) {
  SwitchedIteration result;
  result.power.reserve(2 * rank_.size());
  std::vector<double> follows_s(ranks_, 0);
  const PlanFrom& last = plans.back();
  for (int r = 0; r < ranks_ && !last.from_s.empty(); ++r) follows_s[r] = last.from_s[r];
  double makespan_s = 0;
  for (std::size_t i = 0; i < rank_.size(); ++i) {
    double start_s = 0;
    for (int b = first_before_[i]; b < first_before_[i + 1]; ++b) {
      start_s = std::max(start_s, end_s_[before_[b].computation] + before_[b].latency_s);
    }
    const std::size_t plan = plan_at(plans, rank_[i], start_s);
    const Option& option = options_[first_option_[i] + (*plans[plan].plan)[i]];
    end_s_[i] = start_s + option.time_s;
    makespan_s = std::max(makespan_s, end_s_[i]);
    if (plan + 1 < plans.size()) follows_s[rank_[i]] = std::max(follows_s[rank_[i]], end_s_[i]);
    if (end_s_[i] > start_s) {
      const double above_w = option.power_w - waiting_w_[i];
      result.power.push_back({start_s, above_w});
      result.power.push_back({end_s_[i], -above_w});
    }
  }
  std::ranges::sort(result.power, {}, &emulator::PowerChange::time_s);
  result.makespan = Seconds(makespan_s);
  for (const double follows : follows_s) result.all_follow_s = std::max(result.all_follow_s, follows);
  return result;
}

}  // namespace perseus::site_emulator
