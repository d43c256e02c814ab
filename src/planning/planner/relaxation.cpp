#include "planning/planner/relaxation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace perseus::planner {
namespace {

using graph::Integer;

// Disjoint sets of event nodes, for contraction.
class Sets {
 public:
  explicit Sets(int size) : parent_(size) { std::iota(parent_.begin(), parent_.end(), 0); }
  int find(int v) {
    while (parent_[v] != v) v = parent_[v] = parent_[parent_[v]];
    return v;
  }
  void merge(int a, int b) { parent_[find(a)] = find(b); }

 private:
  std::vector<int> parent_;
};

// Longest path with every computation at its slowest choice: the upper limit of all event times.
double slowest_makespan(const model::ComputationDag& dag, const Kinds& kinds) {
  std::vector<double> start(dag.computations.size(), 0);
  double makespan = 0;
  std::size_t next = 0;
  std::vector<model::Dependency> edges = dag.dependencies;
  std::ranges::sort(edges, {}, &model::Dependency::before);
  for (int i = 0; i < static_cast<int>(dag.computations.size()); ++i) {
    const double end = start[i] + kinds.sets[kinds.of_computation[i]].pareto.front().time.value();
    makespan = std::max(makespan, end);
    for (; next < edges.size() && edges[next].before == i; ++next) {
      start[edges[next].after] = std::max(start[edges[next].after], end + edges[next].latency.value());
    }
  }
  return makespan;
}

}  // namespace

Relaxation::Relaxation(const model::ComputationDag& dag, const Kinds& kinds)
    : kind_of_computation_(kinds.of_computation), dag_(dag) {
  const int n = static_cast<int>(dag.computations.size());

  // Quanta. Time: 2^-46 of the longest makespan (summed along a path of thousands, still well below 1e-9 of it).
  // Prices: the unit keeps the flow far from overflow; at most as many computations share it at a time as there are
  // ranks.
  seconds_per_tick_ = std::ldexp(slowest_makespan(dag, kinds), -46);
  std::vector<std::vector<Integer>> lengths(kinds.sets.size());
  std::vector<std::vector<double>> prices(kinds.sets.size());
  double highest_price = 0;
  for (std::size_t k = 0; k < kinds.sets.size(); ++k) {
    const ChoiceSet& set = kinds.sets[k];
    const Choice* previous = nullptr;
    for (const int at : set.hull) {
      const Choice& choice = set.pareto[at];
      lengths[k].push_back(ticks(choice.time));
      prices[k].push_back(previous ? (choice.effective_energy - previous->effective_energy) /
                                         (previous->time - choice.time) / Watts(1)
                                   : 0);
      highest_price = std::max(highest_price, prices[k].back());
      previous = &choice;
    }
  }
  watts_per_unit_ = highest_price > 0 ? std::ldexp(highest_price, -60) * dag.num_ranks() : 1;
  std::vector<std::vector<Integer>> thresholds(kinds.sets.size());
  vertices_.resize(kinds.sets.size());
  for (std::size_t k = 0; k < kinds.sets.size(); ++k) {
    // Vertices closer than a quantum in time or price merge into the faster one.
    std::vector<Integer> kept;
    for (std::size_t j = 0; j < lengths[k].size(); ++j) {
      const auto price = static_cast<Integer>(std::llround(prices[k][j] / watts_per_unit_));
      if (j > 0 && (lengths[k][j] == kept.back() || price <= thresholds[k].back())) {
        kept.back() = lengths[k][j];
        vertices_[k].back() = kinds.sets[k].hull[j];
        continue;
      }
      kept.push_back(lengths[k][j]);
      vertices_[k].push_back(kinds.sets[k].hull[j]);
      thresholds[k].push_back(price);
    }
    lengths[k] = std::move(kept);
  }

  // Events: start and end of each computation, source and sink. An end merges with its single follower's start, a
  // start with its single predecessor's end, if nothing lies between; first starts merge with the source.
  std::vector<int> incoming(n, 0), outgoing(n, 0);
  for (const model::Dependency& d : dag.dependencies) {
    ++outgoing[d.before];
    ++incoming[d.after];
  }
  const int source = 2 * n, sink = 2 * n + 1;
  Sets events(2 * n + 2);
  for (const model::Dependency& d : dag.dependencies) {
    if (d.latency == Seconds(0) && (outgoing[d.before] == 1 || incoming[d.after] == 1)) {
      events.merge(2 * d.before + 1, 2 * d.after);
    }
  }
  for (int i = 0; i < n; ++i) {
    if (incoming[i] == 0) events.merge(2 * i, source);
    if (outgoing[i] == 0) events.merge(2 * i + 1, sink);
  }
  // Number nodes and arcs along each rank: the sweep moves whole sections of a rank at a time.
  std::vector<int> number(2 * n + 2, -1);
  const auto node = [&](int event) {
    int& id = number[events.find(event)];
    if (id < 0) id = network_.num_nodes++;
    return id;
  };
  std::vector<std::vector<int>> followers(n);
  for (int d = 0; d < static_cast<int>(dag.dependencies.size()); ++d)
    followers[dag.dependencies[d].before].push_back(d);
  network_.source = node(source);
  start_node_.resize(n);
  end_node_.resize(n);
  arc_of_computation_.resize(n);
  arc_of_dependency_.resize(dag.dependencies.size());
  for (const std::vector<int>& order : dag.rank_order) {
    for (const int i : order) {
      start_node_[i] = node(2 * i);
      end_node_[i] = node(2 * i + 1);
    }
  }
  network_.sink = node(sink);
  for (const std::vector<int>& order : dag.rank_order) {
    for (const int i : order) {
      const int k = kinds.of_computation[i];
      arc_of_computation_[i] = network_.add_arc(start_node_[i], end_node_[i], lengths[k], thresholds[k]);
      least_energy_ += kinds.sets[k].pareto.front().effective_energy;
      for (const int d : followers[i]) {
        const model::Dependency& dependency = dag.dependencies[d];
        const int from = end_node_[dependency.before], to = start_node_[dependency.after];
        arc_of_dependency_[d] = from == to ? -1 : network_.add_arc(from, to, ticks(dependency.latency));
      }
    }
  }
  sweep_.emplace(network_);
  first_deadline_ = sweep_->deadline();
  t_star_ = deadline();
}

bool Relaxation::lower_deadline(Seconds target, StopCheck& check) {
  const auto record = [this](Integer deadline, Integer flow) {
    if (!pieces_.empty() && pieces_.back().flow == flow) {
      pieces_.back().end = deadline;
    } else {
      pieces_.push_back({deadline, flow});
    }
  };
  return sweep_->lower_deadline(ticks(std::clamp(target, Seconds(0), t_star_)), record, check);
}

model::LowerBound Relaxation::curve() const {
  model::LowerBound bound;
  bound.vertices.reserve(pieces_.size() + 1);
  bound.vertices.push_back({t_star_, least_energy_});
  Integer from = first_deadline_;
  double energy = least_energy_.value();
  for (const Piece& piece : pieces_) {
    energy +=
        static_cast<double>(piece.flow) * watts_per_unit_ * (static_cast<double>(from - piece.end) * seconds_per_tick_);
    from = piece.end;
    bound.vertices.push_back({seconds(from), Joules(energy)});
  }
  std::ranges::reverse(bound.vertices);
  return bound;
}

model::BoundCertificate Relaxation::certificate() const {
  model::BoundCertificate certificate;
  certificate.deadline = deadline();
  const auto watts = [&](Integer flow) { return static_cast<double>(flow) * watts_per_unit_; };
  for (const int arc : arc_of_computation_) certificate.computation_flow_w.push_back(watts(sweep_->flow(arc)));
  // A dependency without an arc of its own carries all flow that leaves `before`, or all that enters `after`.
  std::vector<int> outgoing(dag_.computations.size(), 0);
  for (const model::Dependency& d : dag_.dependencies) ++outgoing[d.before];
  for (std::size_t d = 0; d < arc_of_dependency_.size(); ++d) {
    const model::Dependency& dependency = dag_.dependencies[d];
    const int only = outgoing[dependency.before] == 1 ? dependency.before : dependency.after;
    certificate.dependency_flow_w.push_back(arc_of_dependency_[d] < 0 ? certificate.computation_flow_w[only]
                                                                      : watts(sweep_->flow(arc_of_dependency_[d])));
  }
  return certificate;
}

}  // namespace perseus::planner
