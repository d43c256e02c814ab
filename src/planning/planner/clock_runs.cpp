#include "planning/planner/clock_runs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/result.h"

namespace perseus::planner {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr long kOperationsPerClock = 10;  // per computation, in elementary operations

}  // namespace

ClockRuns::ClockRuns(const model::ComputationDag& dag) : dag_(dag) {
  for (const std::vector<int>& order : dag.rank_order) {
    Rank rank;
    for (const int i : order) {
      if (dag.type_of(i).options.front().clock == Megahertz(0)) continue;
      rank.order.push_back(i);
      const int type = dag.computations[i].type;
      if (std::ranges::find(rank.types, type) == rank.types.end()) rank.types.push_back(type);
    }
    if (!rank.types.empty()) {
      for (const model::Measurement& m : dag.types[rank.types.front()].options) {
        const auto has_it = [&](int type) { return option(type, m.clock) >= 0; };
        if (std::ranges::all_of(rank.types, has_it)) rank.clocks.push_back(m.clock);
      }
    }
    ranks_.push_back(std::move(rank));
  }
}

int ClockRuns::option(int type, Megahertz clock) const {
  const std::vector<model::Measurement>& options = dag_.types[type].options;
  // Options are in descending order of clock.
  const auto at = std::ranges::lower_bound(options, clock, std::greater{}, &model::Measurement::clock);
  return at != options.end() && at->clock == clock ? static_cast<int>(at - options.begin()) : -1;
}

void ClockRuns::assign(model::Plan& plan, const std::vector<int>& order, std::size_t from, std::size_t to,
                       Megahertz clock) const {
  for (std::size_t j = from; j < to; ++j) {
    const int i = order[j % order.size()];
    plan[i] = static_cast<std::uint16_t>(option(dag_.computations[i].type, clock));
  }
}

model::Plan ClockRuns::fastest_everywhere() const {
  model::Plan plan(dag_.computations.size(), 0);
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const std::vector<model::Measurement>& options = dag_.type_of(static_cast<int>(i)).options;
    plan[i] =
        static_cast<std::uint16_t>(std::ranges::min_element(options, {}, &model::Measurement::time) - options.begin());
  }
  return plan;
}

model::Plan ClockRuns::fastest_without_changes() const {
  model::Plan plan = fastest_everywhere();
  for (const Rank& rank : ranks_) {
    double least_s = kInfinity;
    for (const Megahertz clock : rank.clocks) {
      double sum_s = 0;
      for (const int i : rank.order) {
        const int type = dag_.computations[i].type;
        sum_s += dag_.types[type].options[option(type, clock)].time.value();
      }
      if (sum_s >= least_s) continue;
      least_s = sum_s;
      assign(plan, rank.order, 0, rank.order.size(), clock);
    }
  }
  return plan;
}

model::Plan ClockRuns::cheapest(const Relaxation& relaxation, const Limits& limits, StopCheck& check) const {
  model::Plan plan = fastest_everywhere();
  for (const Rank& rank : ranks_) {
    if (!rank.clocks.empty()) cheapest_on_rank(rank, relaxation, limits, plan, check);
  }
  return plan;
}

ClockRuns::Costs ClockRuns::costs_on_rank(const Rank& rank, const Relaxation& relaxation, const Limits& limits,
                                          StopCheck& check) const {
  const std::size_t length = rank.order.size(), clocks = rank.clocks.size(), row = length + 1;
  Costs costs{std::vector<double>(row), std::vector<double>(row, 0), std::vector<double>(clocks * row, 0),
              std::vector<double>(clocks * row, 0)};
  for (std::size_t j = 1; j <= length; ++j) {
    if (check.stop(kOperationsPerClock * static_cast<long>(clocks))) break;
    const int i = rank.order[j - 1], type = dag_.computations[i].type;
    const double price_w = limits.price_factor * relaxation.price(i).value();
    const double blocking_w = dag_.blocking_power_of(i).value();
    costs.end_s[j] = relaxation.seconds(relaxation.end_ticks(i)).value();
    const double waited_s = j == 1 ? 0 : relaxation.seconds(relaxation.start_ticks(i)).value() - costs.end_s[j - 1];
    costs.late[j] = price_w * std::max(0.0, limits.switch_latency.value() - waited_s);
    for (std::size_t c = 0; c < clocks; ++c) {
      const model::Measurement& m = dag_.types[type].options[option(type, rank.clocks[c])];
      costs.sum[c * row + j] = costs.sum[c * row + j - 1] + m.energy.value() + (price_w - blocking_w) * m.time.value();
      costs.log_time[c * row + j] = std::log(m.time.value());
    }
  }
  // The last change of the iteration before.
  costs.end_s[0] = costs.end_s[length] - relaxation.deadline().value();
  return costs;
}

void ClockRuns::cheapest_on_rank(const Rank& rank, const Relaxation& relaxation, const Limits& limits,
                                 model::Plan& plan, StopCheck& check) const {
  const std::size_t length = rank.order.size(), clocks = rank.clocks.size(), row = length + 1;
  const double dwell_s = std::min(limits.min_dwell.value(), relaxation.deadline().value());
  const Costs costs = costs_on_rank(rank, relaxation, limits, check);
  if (check.stopped()) return;

  // before[c * row + j]: the least cost of the first j computations in runs that are all long enough, if clock c
  // comes next; previous_clock: the clock of the last of these runs. After a slower clock, a clock that arrives
  // `late` s late costs a computation late * (1 - t_fast / t_slow) seconds. log(t_slow / t_fast) replaces that ratio,
  // so that one pass over clocks from slow to fast finds the best predecessor of each.
  std::vector<double> before(clocks * row, 0), at_clock(clocks, kInfinity);
  std::vector<std::size_t> previous_clock(clocks * row, 0), run_start(clocks * row, 0);
  std::size_t latest_start = 0, last_clock = 0;
  for (std::size_t j = 1; j <= length; ++j) {
    if (check.stop(kOperationsPerClock * static_cast<long>(clocks))) return;
    while (latest_start + 1 < j && costs.end_s[j] - costs.end_s[latest_start + 1] >= dwell_s) ++latest_start;
    const bool may_end_here = costs.end_s[j] - costs.end_s[latest_start] >= dwell_s || j == length;
    std::size_t cheapest = 0;
    for (std::size_t c = 0; c < clocks; ++c) {
      const double* const sum = &costs.sum[c * row];
      const double longer = at_clock[c] + sum[j] - sum[j - 1];
      const double fresh = may_end_here ? before[c * row + latest_start] + sum[j] - sum[latest_start] : kInfinity;
      run_start[c * row + j] = fresh < longer ? latest_start : run_start[c * row + j - 1];
      at_clock[c] = std::min(fresh, longer);
      if (at_clock[c] < at_clock[cheapest]) cheapest = c;
    }
    last_clock = cheapest;
    if (j == length) break;
    // Clocks are in descending order: going up from the lowest, `slow` is the best of those below.
    double slow = kInfinity;
    std::size_t slow_clock = 0;
    for (std::size_t c = clocks; c-- > 0;) {
      const double log_t = costs.late[j + 1] * costs.log_time[c * row + j + 1];
      if (at_clock[c] + log_t < slow) {
        slow = at_clock[c] + log_t;
        slow_clock = c;
      }
      const bool from_slow = slow - log_t < at_clock[cheapest];
      // A change from a faster clock costs nothing; `cheapest` is faster, or costs no less than `slow`.
      const bool is_faster = cheapest <= c;
      before[c * row + j] = is_faster && !from_slow ? at_clock[cheapest] : slow - log_t;
      previous_clock[c * row + j] = is_faster && !from_slow ? cheapest : slow_clock;
    }
  }
  for (std::size_t to = length, c = last_clock; to > 0;) {
    const std::size_t from = run_start[c * row + to];
    assign(plan, rank.order, from, to, rank.clocks[c]);
    c = previous_clock[c * row + from];
    to = from;
  }
}

Megahertz ClockRuns::clock_at(int rank, std::size_t position, const model::Plan& plan) const {
  const std::vector<int>& order = ranks_[rank].order;
  const int i = order[position % order.size()];
  return dag_.type_of(i).options[plan[i]].clock;
}

std::vector<ClockRuns::Run> ClockRuns::runs(int rank, const model::Plan& plan, const std::vector<double>& end_s,
                                            Seconds makespan) const {
  const std::vector<int>& order = ranks_[rank].order;
  const std::size_t length = order.size();
  PERSEUS_CHECK(length > 0, "a rank without computations changes no clocks");
  std::vector<std::size_t> changes;
  for (std::size_t j = 0; j < length; ++j) {
    if (clock_at(rank, j, plan) != clock_at(rank, j + length - 1, plan)) changes.push_back(j);
  }
  // The clock of position j is requested when the computation before it ends.
  const auto requested_s = [&](std::size_t j) {
    const std::size_t before = j + length - 1;
    const std::size_t iteration = before / length;
    return end_s[order[before % length]] + makespan.value() * (static_cast<double>(iteration) - 1);
  };
  std::vector<Run> runs;
  for (std::size_t k = 0; k < changes.size(); ++k) {
    const std::size_t to = k + 1 < changes.size() ? changes[k + 1] : changes[0] + length;
    runs.push_back({changes[k], to, requested_s(to) - requested_s(changes[k])});
  }
  return runs;
}

bool ClockRuns::dwells(const model::Plan& plan, const std::vector<double>& end_s, Seconds makespan,
                       Seconds min_dwell) const {
  for (int rank = 0; rank < dag_.num_ranks(); ++rank) {
    if (ranks_[rank].clocks.empty()) continue;
    for (const Run& run : runs(rank, plan, end_s, makespan)) {
      if (run.dwell_s < min_dwell.value()) return false;
    }
  }
  return true;
}

bool ClockRuns::lengthen_runs(model::Plan& plan, const std::vector<double>& end_s, Seconds makespan,
                              Seconds min_dwell) const {
  bool merged_any = false;
  const auto measured = [&](int i) -> const model::Measurement& { return dag_.type_of(i).options[plan[i]]; };
  for (int r = 0; r < dag_.num_ranks(); ++r) {
    const Rank& rank = ranks_[r];
    const std::size_t length = rank.order.size();
    if (rank.clocks.empty()) continue;
    const auto at = [&](std::size_t j) { return rank.order[j % length]; };
    while (true) {
      const std::vector<Run> runs = this->runs(r, plan, end_s, makespan);
      if (runs.empty()) break;
      const auto shortest = std::ranges::min_element(runs, {}, &Run::dwell_s);
      if (shortest->dwell_s >= min_dwell.value()) break;

      // Merge it with the neighbor that costs less, at the cheapest clock that slows nothing down; if there is none,
      // at the clock with the least sum of times.
      struct Merge {
        std::size_t from, to;
        Megahertz clock;
        bool slower;
        double cost;
      };
      const auto merge_of = [&](std::size_t from, std::size_t to) {
        Merge best{from, to, rank.clocks.front(), true, kInfinity};
        for (const Megahertz clock : rank.clocks) {
          bool slower = false;
          double more_j = 0, more_s = 0;
          for (std::size_t j = from; j < to; ++j) {
            const int i = at(j), type = dag_.computations[i].type;
            const model::Measurement &now = measured(i), &then = dag_.types[type].options[option(type, clock)];
            slower |= then.time > now.time;
            more_s += (then.time - now.time).value();
            more_j += (then.energy - now.energy - dag_.blocking_power_of(i) * (then.time - now.time)).value();
          }
          const Merge merge{from, to, clock, slower, slower ? more_s : more_j};
          if (std::pair(merge.slower, merge.cost) < std::pair(best.slower, best.cost)) best = merge;
        }
        return best;
      };
      const std::size_t k = static_cast<std::size_t>(shortest - runs.begin()), count = runs.size();
      const Run &before = runs[(k + count - 1) % count], &after = runs[(k + 1) % count];
      const Merge with_before = merge_of(shortest->from + length - (before.to - before.from), shortest->to + length);
      const Merge with_after = merge_of(shortest->from, shortest->to + (after.to - after.from));
      const Merge& merge =
          std::pair(with_after.slower, with_after.cost) < std::pair(with_before.slower, with_before.cost) ? with_after
                                                                                                          : with_before;
      assign(plan, rank.order, merge.from, merge.to, merge.clock);
      merged_any = true;
    }
  }
  return merged_any;
}

}  // namespace perseus::planner
