#include "planning/planner/splices.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace perseus::planner {
namespace {

constexpr int kMostCuts = 64;

// Wanted deadlines look at splices of points up to this much slower.
constexpr double kNearWanted = 1e-3, kByWanted = 1e-10;

// Elementary operations per computation (base/stop_check.h).
constexpr long kOperationsOfPaths = 20, kOperationsOfSplicing = 5, kOperationsOfKeeping = 10;

}  // namespace

Splices::Splices(const model::ComputationDag& dag, const model::Plan& fastest, Realizer& realizer)
    : realizer_(realizer),
      before_(model::neighbors_before_s(dag)),
      after_(model::neighbors_after_s(dag)),
      order_(dag.computations.size()) {
  const int n = static_cast<int>(order_.size());
  const auto time_s = [&](int i) { return realizer.option(i, fastest[i]).time_s; };
  std::vector<double> start_s;
  model::longest_path(before_, time_s, start_s);
  for (int i = 0; i < n; ++i) start_s[i] -= time_s(i);
  std::iota(order_.begin(), order_.end(), 0);
  std::ranges::stable_sort(order_, {}, [&](int i) { return start_s[i]; });
  std::vector<int> position(n);
  for (int k = 0; k < n; ++k) position[order_[k]] = k;

  const int num_cuts = std::min(n - 1, kMostCuts);
  for (int k = 1; k <= num_cuts; ++k) cuts_.push_back(static_cast<int>(static_cast<long>(k) * n / (num_cuts + 1)));
  makespan_s_.resize(cuts_.size());
  const auto add = [&](int before, int after, double latency_s) {
    const auto cut_after = [&](int i) {
      return static_cast<int>(std::ranges::upper_bound(cuts_, position[i]) - cuts_.begin());
    };
    const int first = before == n ? 0 : cut_after(before), last = after == n ? num_cuts : cut_after(after);
    if (first < last) crossings_.push_back({before, after, first, last, latency_s});
  };
  for (const model::Dependency& d : dag.dependencies) add(d.before, d.after, d.latency.value());
  for (int i = 0; i < n; ++i) {
    if (before_.of(i).empty()) add(n, i, 0);
    if (after_.of(i).empty()) add(i, n, 0);
  }
}

void Splices::set_paths(const model::Plan& plan, Paths& paths) {
  const int n = static_cast<int>(order_.size());
  const auto time_s = [&](int i) { return realizer_.option(i, plan[i]).time_s; };
  model::longest_path(before_, time_s, paths.to_end_s);
  model::latest_starts(after_, time_s, 0.0, paths.from_start_s);
  for (double& s : paths.from_start_s) s = -s;
  paths.to_end_s.push_back(0);
  paths.from_start_s.push_back(0);
  paths.energy_before_j.clear();
  paths.energy_j = 0;
  for (int k = 0; k < n; ++k) {
    if (paths.energy_before_j.size() < cuts_.size() && cuts_[paths.energy_before_j.size()] == k) {
      paths.energy_before_j.push_back(paths.energy_j);
    }
    const int i = order_[k];
    paths.energy_j += realizer_.option(i, plan[i]).effective_j;
  }
}

void Splices::splice(const Paths& first, const Paths& second) {
  std::ranges::fill(makespan_s_, 0.0);
  for (const Crossing& crossing : crossings_) {
    const double path_s = first.to_end_s[crossing.before] + crossing.latency_s + second.from_start_s[crossing.after];
    for (int k = crossing.first_cut; k < crossing.last_cut; ++k) makespan_s_[k] = std::max(makespan_s_[k], path_s);
  }
}

model::Plan Splices::plan_of(const model::Plan& first, const model::Plan& second, int cut) const {
  model::Plan plan = second;
  for (int k = 0; k < cuts_[cut]; ++k) plan[order_[k]] = first[order_[k]];
  return plan;
}

void Splices::add_to(std::vector<model::FrontierPoint>& points, const model::LowerBound& bound, int most,
                     const std::vector<Seconds>& wanted, StopCheck& check) {
  if (points.size() < 2 || cuts_.empty()) return;
  const long n = static_cast<long>(order_.size());
  const double slowest_s = points.front().time.value(), range_s = slowest_s - points.back().time.value();
  // The bound at equal steps of time. Spans are equal in its energy: what lies between two points costs the same
  // everywhere.
  std::vector<double> bound_j;
  for (int k = 0; k <= most; ++k) bound_j.push_back(bound.at(Seconds(slowest_s - range_s * k / most)).value());
  const double spans_per_j = most / (bound_j[most] - bound_j[0]);
  if (!std::isfinite(spans_per_j)) return;
  std::vector<Splice> best(most), best_wanted(wanted.size());
  const auto offer = [](Splice& slot, const Splice& splice) {
    if (slot.cut < 0 || splice.worse < slot.worse) slot = splice;
  };
  std::vector<std::size_t> near;  // of wanted
  for (std::size_t p = 0; p < points.size(); ++p) {
    if (check.stop(kOperationsOfPaths * n)) return;
    set_paths(points[p].plan, paths_[p % paths_.size()]);
    for (std::size_t slower = p - std::min(p, kReach); slower < p; ++slower) {
      near.clear();
      for (std::size_t w = 0; w < wanted.size(); ++w) {
        if (wanted[w] >= points[p].time && (1 - kNearWanted) * wanted[w] <= points[slower].time) near.push_back(w);
      }
      for (const auto& [first, second] : {std::pair(slower, p), std::pair(p, slower)}) {
        if (check.stop(kOperationsOfSplicing * n)) return;
        const Paths &a = paths_[first % paths_.size()], &b = paths_[second % paths_.size()];
        splice(a, b);
        for (int cut = 0; cut < static_cast<int>(cuts_.size()); ++cut) {
          const double energy_j = a.energy_before_j[cut] + (b.energy_j - b.energy_before_j[cut]);
          for (const std::size_t w : near) {
            if (makespan_s_[cut] <= (1 + kByWanted) * wanted[w].value()) {
              offer(best_wanted[w], {energy_j, first, second, cut});
            }
          }
          const double steps = (slowest_s - makespan_s_[cut]) / range_s * most;
          if (!(steps >= 0 && steps < most)) continue;
          const int step = static_cast<int>(steps);
          const double least_j = bound_j[step] + (bound_j[step + 1] - bound_j[step]) * (steps - step);
          const int span = std::min(most - 1, static_cast<int>((least_j - bound_j[0]) * spans_per_j));
          offer(best[span], {energy_j - least_j, first, second, cut});
        }
      }
    }
  }
  best.insert(best.end(), best_wanted.begin(), best_wanted.end());
  const std::size_t spliced = points.size();
  for (const Splice& splice : best) {
    if (splice.cut < 0) continue;
    if (check.stop(kOperationsOfKeeping * n)) return;
    model::Plan plan = plan_of(points[splice.first].plan, points[splice.second].plan, splice.cut);
    const Realizer::Outcome outcome = realizer_.realize(plan);
    points.push_back({outcome.time, {}, outcome.effective_energy, {}, std::move(plan), {}});
  }
  if (points.size() > spliced) keep_pareto(points);
}

}  // namespace perseus::planner
