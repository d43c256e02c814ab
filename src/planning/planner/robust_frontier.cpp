#include "planning/planner/robust_frontier.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <optional>

#include "planning/model/default_plan.h"
#include "planning/model/neighbors.h"
#include "planning/model/reference_plans.h"
#include "planning/planner/realize.h"

namespace perseus::planner {
namespace {

constexpr std::size_t kRepairs = 40;              // of plans evenly spread over the frontier
constexpr std::size_t kRoundsPerComputation = 4;  // of a repair, at most
constexpr int kReclaims = 200;
constexpr int kRounds = 8;
constexpr double kSameSum = 1 + 1e-12;
// Times, relative to a wanted slowdown, of the plans that repairs begin with; the cheapest result stays.
constexpr std::array kStarts = {1.0, 1.002, 1.005, 1.01, 1.02};

/// Iterations with each set of latencies; set 0 is the DAG's own.
class Iterations {
 public:
  Iterations(const model::ComputationDag& dag, const LatencySets& sets)
      : dag_(dag),
        before_(model::neighbors_before_s(dag)),
        after_(model::neighbors_after_s(dag)),
        num_sets_(sets.size() + 1),
        latency_s_(num_sets_ * dag.dependencies.size()),
        makespan_s_(num_sets_) {
    for (std::size_t d = 0; d < dag.dependencies.size(); ++d) {
      latency_s_[d * num_sets_] = dag.dependencies[d].latency.value();
      for (std::size_t k = 0; k < sets.size(); ++k) latency_s_[d * num_sets_ + k + 1] = sets[k][d].value();
    }
    highest_s_ = makespans_s(model::all_maximum_clock(dag));
  }

  [[nodiscard]] const model::Measurement& option(int computation, int number) const {
    return dag_.type_of(computation).options[number];
  }
  [[nodiscard]] double effective_j(int computation, int number) const {
    const model::Measurement& m = option(computation, number);
    return (m.energy - dag_.blocking_power_of(computation) * m.time).value();
  }

  /// Per set, of everything at maximum clock.
  [[nodiscard]] const std::vector<double>& highest_s() const { return highest_s_; }

  /// Per set. Sets the ends of the computations.
  const std::vector<double>& makespans_s(const model::Plan& plan) {
    end_s_.assign(plan.size() * num_sets_, 0);
    std::ranges::fill(makespan_s_, 0);
    for (std::size_t i = 0; i < plan.size(); ++i) {
      double* end_s = ends_s(i);
      for (const model::Neighbor<double>& b : before_.of(static_cast<int>(i))) {
        const double *before_s = ends_s(b.computation), *latency_s = latencies_s(b);
        for (std::size_t k = 0; k < num_sets_; ++k) end_s[k] = std::max(end_s[k], before_s[k] + latency_s[k]);
      }
      const double own_s = option(static_cast<int>(i), plan[i]).time.value();
      for (std::size_t k = 0; k < num_sets_; ++k) {
        end_s[k] += own_s;
        makespan_s_[k] = std::max(makespan_s_[k], end_s[k]);
      }
    }
    return makespan_s_;
  }

  /// Of the plan that makespans_s() ran last.
  std::vector<int> critical_path(std::size_t set) {
    int at = 0;
    for (int i = 1; i < before_.num_nodes(); ++i) {
      if (ends_s(i)[set] > ends_s(at)[set]) at = i;
    }
    std::vector<int> path{at};
    for (auto before = before_.of(at); !before.empty(); before = before_.of(at)) {
      const auto arrival_s = [&](const model::Neighbor<double>& b) {
        return ends_s(b.computation)[set] + latencies_s(b)[set];
      };
      at = std::ranges::max_element(before, {}, arrival_s)->computation;
      path.push_back(at);
    }
    return path;
  }

  /// How much longer each computation may take with all sets; of the plan that makespans_s() ran last.
  std::vector<double> slacks_s(const model::Plan& plan, const std::vector<double>& deadlines_s) {
    std::vector<double> start_s(plan.size() * num_sets_), slack_s(plan.size(), std::numeric_limits<double>::infinity());
    std::vector<double> latest_s(num_sets_);
    for (int i = before_.num_nodes() - 1; i >= 0; --i) {
      latest_s = deadlines_s;
      for (const model::Neighbor<double>& a : after_.of(i)) {
        const double *after_s = &start_s[a.computation * num_sets_], *latency_s = latencies_s(a);
        for (std::size_t k = 0; k < num_sets_; ++k) latest_s[k] = std::min(latest_s[k], after_s[k] - latency_s[k]);
      }
      const double own_s = option(i, plan[i]).time.value();
      for (std::size_t k = 0; k < num_sets_; ++k) {
        slack_s[i] = std::min(slack_s[i], latest_s[k] - ends_s(i)[k]);
        start_s[i * num_sets_ + k] = latest_s[k] - own_s;
      }
    }
    return slack_s;
  }

 private:
  [[nodiscard]] double* ends_s(std::size_t computation) { return &end_s_[computation * num_sets_]; }
  [[nodiscard]] const double* latencies_s(const model::Neighbor<double>& n) const {
    return &latency_s_[n.dependency * num_sets_];
  }

  const model::ComputationDag& dag_;
  model::Neighbors<double> before_, after_;
  std::size_t num_sets_;
  std::vector<double> latency_s_;           // [dependency][set]
  std::vector<double> end_s_, makespan_s_;  // [computation][set]; [set]
  std::vector<double> highest_s_;
};

/// Another option for a computation.
struct OtherOption {
  int computation = 0;
  std::uint16_t option = 0;
  double time_s = 0;  ///< more or less than before
  double cost_j = 0;  ///< of effective energy
};

class Repair {
 public:
  Repair(const model::ComputationDag& dag, Iterations& iterations) : dag_(dag), iterations_(iterations) {}

  /// The plan, changed so that it meets the deadline of each set.
  std::optional<model::Plan> repaired(model::Plan plan, const std::vector<double>& deadlines_s) {
    for (std::size_t left = kRoundsPerComputation * plan.size(); left > 0; --left) {
      const std::vector<double>& time_s = iterations_.makespans_s(plan);
      std::size_t worst = 0;
      for (std::size_t k = 1; k < time_s.size(); ++k) {
        if (time_s[k] - deadlines_s[k] > time_s[worst] - deadlines_s[worst]) worst = k;
      }
      const double late_s = time_s[worst] - deadlines_s[worst];
      if (late_s <= 0) {
        reclaim(plan, deadlines_s);
        return plan;
      }
      if (!hurry(plan, iterations_.critical_path(worst), late_s)) return std::nullopt;
    }
    return std::nullopt;
  }

 private:
  /// The changes of least energy for their time that make the path shorter by `late_s`, or as many as there are.
  bool hurry(model::Plan& plan, const std::vector<int>& path, double late_s) {
    std::vector<OtherOption> changes;
    for (const int i : path) {
      std::optional<OtherOption> best;
      for_each_change(plan, i, [&](const OtherOption& change) {
        if (change.time_s >= 0) return;
        if (!best || change.cost_j * best->time_s > best->cost_j * change.time_s) best = change;
      });
      if (best) changes.push_back(*best);
    }
    std::ranges::sort(
        changes, [](const OtherOption& a, const OtherOption& b) { return a.cost_j * b.time_s > b.cost_j * a.time_s; });
    for (const OtherOption& change : changes) {
      plan[change.computation] = change.option;
      late_s += change.time_s;
      if (late_s <= 0) break;
    }
    return !changes.empty();
  }

  /// Slower options where they fit all sets, those first that save most.
  void reclaim(model::Plan& plan, const std::vector<double>& deadlines_s) {
    for (int round = 0; round < kReclaims; ++round) {
      iterations_.makespans_s(plan);
      const std::vector<double> slack_s = iterations_.slacks_s(plan, deadlines_s);
      std::vector<OtherOption> changes;
      for (int i = 0; i < static_cast<int>(plan.size()); ++i) {
        OtherOption best;
        for_each_change(plan, i, [&](const OtherOption& change) {
          if (change.time_s <= slack_s[i] && change.cost_j < best.cost_j) best = change;
        });
        if (best.cost_j < 0) changes.push_back(best);
      }
      std::ranges::sort(changes, {}, &OtherOption::cost_j);
      if (!apply_some(plan, changes, deadlines_s)) return;
    }
  }

  /// The first half of the changes, or of the half, and so on, that fits: computations on one path share its slack.
  bool apply_some(model::Plan& plan, const std::vector<OtherOption>& changes, const std::vector<double>& deadlines_s) {
    for (std::size_t count = changes.size(); count > 0; count /= 2) {
      model::Plan changed = plan;
      for (std::size_t c = 0; c < count; ++c) changed[changes[c].computation] = changes[c].option;
      const auto& time_s = iterations_.makespans_s(changed);
      if (!std::ranges::equal(time_s, deadlines_s, std::less_equal())) continue;
      plan = std::move(changed);
      return true;
    }
    return false;
  }

  template <class Visit>
  void for_each_change(const model::Plan& plan, int i, Visit visit) {
    const double now_s = iterations_.option(i, plan[i]).time.value(), now_j = iterations_.effective_j(i, plan[i]);
    for (int o = 0; o < static_cast<int>(dag_.type_of(i).options.size()); ++o) {
      visit(OtherOption{i, static_cast<std::uint16_t>(o), iterations_.option(i, o).time.value() - now_s,
                        iterations_.effective_j(i, o) - now_j});
    }
  }

  const model::ComputationDag& dag_;
  Iterations& iterations_;
};

/// The set with which a plan is later than the DAG's own latencies say, against maximum clock, and by how much.
struct Late {
  std::size_t set = 0;
  double by_s = 0;
};
Late latest(const std::vector<double>& time_s, const std::vector<double>& highest_s) {
  Late most;
  for (std::size_t k = 1; k < time_s.size(); ++k) {
    const double late_s = (time_s[k] - highest_s[k]) - (time_s[0] - highest_s[0]);
    if (late_s > most.by_s) most = {k, late_s};
  }
  return most;
}

/// Repairs for all sets, with only those in view that have made a plan late so far: they are few.
class RepairForAll {
 public:
  RepairForAll(const model::ComputationDag& dag, const LatencySets& sets)
      : dag_(dag), sets_(sets), all_(dag, sets), tolerance_s_(kLinkTolerance * all_.highest_s().front()) {}

  [[nodiscard]] Seconds t_max() const { return Seconds(all_.highest_s().front()); }

  bool is_late(const model::Plan& plan) {
    const Late late = latest(all_.makespans_s(plan), all_.highest_s());
    if (late.by_s <= tolerance_s_) return false;
    if (std::ranges::find(binding_, late.set) == binding_.end()) {
      binding_.push_back(late.set);
      in_view_.reset();
    }
    return true;
  }

  /// The plan, changed so that it needs at most `wanted`, and with no set more than it may. If it then needs less by
  /// the DAG's own latencies, it has to keep that time too.
  std::optional<model::Plan> repaired(model::Plan plan, Seconds wanted) {
    for (int round = 0; round < kRounds; ++round) {
      if (!in_view_) look_at_binding();
      std::vector<double> deadlines_s = in_view_->highest_s();
      for (double& deadline_s : deadlines_s) deadline_s += (wanted - t_max()).value() + tolerance_s_;
      deadlines_s.front() = kSameSum * wanted.value();
      auto changed = Repair(dag_, *in_view_).repaired(std::move(plan), deadlines_s);
      if (!changed || !is_late(*changed)) return changed;
      plan = *std::move(changed);
      wanted = std::min(wanted, Seconds(all_.makespans_s(plan).front()));
    }
    return std::nullopt;
  }

 private:
  void look_at_binding() {
    LatencySets sets;
    for (const std::size_t set : binding_) sets.push_back(sets_[set - 1]);
    in_view_.emplace(dag_, sets);
  }

  const model::ComputationDag& dag_;
  const LatencySets& sets_;
  Iterations all_;
  double tolerance_s_;
  std::vector<std::size_t> binding_;
  std::optional<Iterations> in_view_;
};

}  // namespace

double lateness_with(const model::ComputationDag& dag, const LatencySets& sets, const model::Plan& plan) {
  Iterations iterations(dag, sets);
  return latest(iterations.makespans_s(plan), iterations.highest_s()).by_s / iterations.highest_s().front();
}

model::Frontier robust_frontier(const model::ComputationDag& dag, const LatencySets& sets, model::Frontier frontier,
                                std::span<const double> slowdowns) {
  if (sets.empty()) return frontier;
  RepairForAll repair(dag, sets);
  Realizer realizer(dag);
  const Seconds t_max = repair.t_max();
  std::vector<int> is_late;
  for (const model::FrontierPoint& point : frontier.points) is_late.push_back(repair.is_late(point.plan) ? 1 : 0);

  model::Frontier robust{{}, frontier.bound, frontier.maximum_clock_noise};
  const auto add = [&](model::Plan plan) {
    const Realizer::Outcome outcome = realizer.realize(plan);
    const Joules waiting = dag.total_blocking_power() * outcome.time;
    robust.points.push_back({outcome.time, outcome.effective_energy + waiting, outcome.effective_energy,
                             frontier.bound.at(outcome.time) + waiting, std::move(plan)});
  };
  /// Begins with the slowest plan within `from`.
  const auto add_repaired = [&](Seconds from, Seconds wanted) {
    if (auto plan = repair.repaired(frontier.points[model::slowest_within(frontier, from)].plan, wanted)) {
      add(*std::move(plan));
    }
  };
  const auto late = static_cast<std::size_t>(std::ranges::count(is_late, 1));
  for (std::size_t p = 0, number = 0; p < is_late.size(); ++p) {
    if (is_late[p] == 0 || number++ % (late / kRepairs + 1) != 0) continue;
    add_repaired(frontier.points[p].time, frontier.points[p].time);
  }
  std::vector<double> wanted(slowdowns.begin(), slowdowns.end());
  wanted.push_back(0);
  for (const double slowdown : wanted) {
    const Seconds time = (1 + slowdown) * t_max;
    if (is_late[model::slowest_within(frontier, time)] == 0) continue;
    for (const double start : kStarts) add_repaired(start * time, time);
  }
  for (std::size_t p = 0; p < is_late.size(); ++p) {
    if (is_late[p] == 0) robust.points.push_back(std::move(frontier.points[p]));
  }
  const auto fast = [&](const model::FrontierPoint& point) { return point.time <= model::kSameTime * t_max; };
  if (std::ranges::none_of(robust.points, fast)) add(model::all_maximum_clock(dag));
  keep_pareto(robust.points);
  return robust;
}

}  // namespace perseus::planner
