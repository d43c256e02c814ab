#include "planning/planner/relaxation.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "planning/model/neighbors.h"

namespace perseus::planner {
namespace {

using graph::Integer;

// Of DAGs with at least this many computations times ranks prices are whole steps, so many of them in the mean power.
constexpr std::size_t kSizeOfSteps = 1 << 19;
constexpr double kSteps = 500;

// A step is no more than this part of the highest price.
constexpr double kFewestPrices = 16;

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
double slowest_makespan_s(const model::ComputationDag& dag, const Kinds& kinds) {
  std::vector<double> end_s;
  return model::longest_path(
      model::neighbors_before_s(dag),
      [&](int i) { return kinds.sets[kinds.of_computation[i]].pareto.front().time.value(); }, end_s);
}

/// Prices of the vertices of a hull, in watts: that of the first, slowest one is 0.
std::vector<double> hull_prices_w(const ChoiceSet& set) {
  std::vector<double> prices;
  const Choice* previous = nullptr;
  for (const int at : set.hull) {
    const Choice& choice = set.pareto[at];
    prices.push_back(previous ? (choice.effective_energy - previous->effective_energy) /
                                    (previous->time - choice.time) / Watts(1)
                              : 0);
    previous = &choice;
  }
  return prices;
}

// Events: start (2 i) and end (2 i + 1) of computation i, source (2 n) and sink (2 n + 1). An end merges with its
// single follower's start, a start with its single predecessor's end, if nothing lies between; first starts merge with
// the source, last ends with the sink.
Sets merged_events(const model::ComputationDag& dag) {
  const int n = static_cast<int>(dag.computations.size());
  std::vector<int> incoming(n, 0), outgoing(n, 0);
  for (const model::Dependency& d : dag.dependencies) {
    ++outgoing[d.before];
    ++incoming[d.after];
  }
  Sets events(2 * n + 2);
  for (const model::Dependency& d : dag.dependencies) {
    if (d.latency == Seconds(0) && (outgoing[d.before] == 1 || incoming[d.after] == 1)) {
      events.merge(2 * d.before + 1, 2 * d.after);
    }
  }
  for (int i = 0; i < n; ++i) {
    if (incoming[i] == 0) events.merge(2 * i, 2 * n);
    if (outgoing[i] == 0) events.merge(2 * i + 1, 2 * n + 1);
  }
  return events;
}

}  // namespace

Watts price_step_of(const model::ComputationDag& dag, const Kinds& kinds) {
  if (dag.computations.size() * dag.rank_order.size() < kSizeOfSteps) return Watts(0);
  const Seconds t_star(slowest_makespan_s(dag, kinds));
  Joules energy = dag.total_blocking_power() * t_star;
  for (const int kind : kinds.of_computation) energy += kinds.sets[kind].pareto.front().effective_energy;
  return std::max(Watts(0), (energy / t_star) * (1 / kSteps));
}

Relaxation::Relaxation(const model::ComputationDag& dag, const Kinds& kinds, Watts price_step, Purpose purpose)
    : kind_of_computation_(kinds.of_computation), dag_(dag) {
  std::vector<Vertices> vertices = quantized_hulls(kinds);
  std::vector<Integer> ends;
  first_deadline_ = model::longest_path(
      model::neighbors_before<Integer>(dag_, [&](const model::Dependency& d) { return ticks(d.latency); }),
      [&](int i) { return vertices[kind_of_computation_[i]].lengths[0]; }, ends);
  t_star_ = seconds(first_deadline_);
  Integer highest = 0;
  for (const Vertices& hull : vertices) highest = std::max(highest, hull.thresholds.back());
  const auto step = static_cast<Integer>(
      std::min(price_step.value() / watts_per_unit_, static_cast<double>(highest) / kFewestPrices));
  if (step > 0) coarsen(vertices, step, purpose);
  number_events();
  add_arcs(vertices);
  for (const std::vector<int>& order : dag.rank_order) {
    for (const int i : order) least_energy_ += kinds.sets[kind_of_computation_[i]].pareto.front().effective_energy;
  }
  if (step > 0) {
    sweep_.emplace<graph::SuccessiveLongestPaths>(network_);
    if (deadline_ticks() < first_deadline_) pieces_.push_back({deadline_ticks(), 0});
  } else {
    sweep_.emplace<graph::ParametricLongestPath>(network_);
  }
}

std::vector<Relaxation::Vertices> Relaxation::quantized_hulls(const Kinds& kinds) {
  // Quanta. Time: 2^-46 of the longest makespan (summed along a path of thousands, still well below 1e-9 of it).
  // Prices: the unit keeps the flow far from overflow; at most as many computations share it at a time as there are
  // ranks.
  seconds_per_tick_ = std::ldexp(slowest_makespan_s(dag_, kinds), -46);
  std::vector<std::vector<double>> prices_w;
  double highest_w = 0;
  for (const ChoiceSet& set : kinds.sets) {
    prices_w.push_back(hull_prices_w(set));
    highest_w = std::max(highest_w, std::ranges::max(prices_w.back()));
  }
  watts_per_unit_ = highest_w > 0 ? std::ldexp(highest_w, -60) * dag_.num_ranks() : 1;
  std::vector<Vertices> all;
  for (std::size_t k = 0; k < kinds.sets.size(); ++k) {
    const ChoiceSet& set = kinds.sets[k];
    Vertices& own = all.emplace_back();
    std::vector<Mix>& choices = choices_.emplace_back();
    for (std::size_t j = 0; j < set.hull.size(); ++j) {
      const Integer length = ticks(set.pareto[set.hull[j]].time);
      const auto price = static_cast<Integer>(std::llround(prices_w[k][j] / watts_per_unit_));
      // Vertices closer than a quantum in time or price merge into the faster one.
      if (j > 0 && (length == own.lengths.back() || price <= own.thresholds.back())) {
        own.lengths.back() = length;
        choices.back() = {set.hull[j], set.hull[j]};
        continue;
      }
      own.lengths.push_back(length);
      own.thresholds.push_back(price);
      choices.push_back({set.hull[j], set.hull[j]});
    }
  }
  return all;
}

void Relaxation::coarsen(std::vector<Vertices>& hulls, Integer step, Purpose purpose) {
  for (std::size_t kind = 0; kind < hulls.size(); ++kind) {
    const auto [lengths, thresholds] = std::exchange(hulls[kind], {});
    const std::vector<Mix> choices = std::exchange(choices_[kind], {});
    Vertices& coarse = hulls[kind];
    const auto add = [&](Integer threshold, Integer length, Mix mix) {
      if (!coarse.thresholds.empty() && coarse.thresholds.back() == threshold) {
        coarse.lengths.back() = length;
        choices_[kind].back() = mix;
      } else if (coarse.lengths.empty() || length < coarse.lengths.back()) {
        coarse.thresholds.push_back(threshold);
        coarse.lengths.push_back(length);
        choices_[kind].push_back(mix);
      }
    };
    add(0, lengths[0], choices[0]);
    if (purpose == Purpose::plans) {
      for (std::size_t j = 1; j < lengths.size(); ++j) {
        add(std::max(step, (thresholds[j] + step / 2) / step * step), lengths[j], choices[j]);
      }
      continue;
    }
    for (std::size_t j = 1; j < lengths.size();) {
      // The mean length over a step within which the length changes.
      const Integer from = thresholds[j] / step * step, to = from + step;
      const std::size_t first = j - 1;
      double sum = 0;
      Integer at = from;
      for (; j < lengths.size() && thresholds[j] < to; at = thresholds[j++]) {
        sum += static_cast<double>(lengths[j - 1]) * static_cast<double>(thresholds[j] - at);
      }
      sum += static_cast<double>(lengths[j - 1]) * static_cast<double>(to - at);
      const auto mean = static_cast<Integer>(std::floor(sum / static_cast<double>(step)));
      add(from, std::clamp(mean, lengths[j - 1], lengths[first]), {choices[first].slower, choices[j - 1].faster});
      add(to, lengths[j - 1], choices[j - 1]);
    }
  }
}

void Relaxation::number_events() {
  const int n = static_cast<int>(dag_.computations.size());
  Sets events = merged_events(dag_);
  std::vector<int> number(2 * n + 2, -1);
  const auto node = [&](int event) {
    int& id = number[events.find(event)];
    if (id < 0) id = network_.num_nodes++;
    return id;
  };
  start_node_.resize(n);
  end_node_.resize(n);
  network_.source = node(2 * n);
  // Along each rank: the sweep moves whole sections of a rank at a time.
  for (const std::vector<int>& order : dag_.rank_order) {
    for (const int i : order) {
      start_node_[i] = node(2 * i);
      end_node_[i] = node(2 * i + 1);
    }
  }
  network_.sink = node(2 * n + 1);
}

void Relaxation::add_arcs(const std::vector<Vertices>& vertices) {
  const auto after =
      model::neighbors_after<Integer>(dag_, [&](const model::Dependency& d) { return ticks(d.latency); });
  arc_of_computation_.resize(dag_.computations.size());
  arc_of_dependency_.resize(dag_.dependencies.size());
  for (const std::vector<int>& order : dag_.rank_order) {
    for (const int i : order) {
      const Vertices& own = vertices[kind_of_computation_[i]];
      arc_of_computation_[i] = network_.add_arc(start_node_[i], end_node_[i], own.lengths, own.thresholds);
      for (const model::Neighbor<Integer>& next : after.of(i)) {
        const int from = end_node_[i], to = start_node_[next.computation];
        arc_of_dependency_[next.dependency] = from == to ? -1 : network_.add_arc(from, to, next.latency);
      }
    }
  }
}

bool Relaxation::lower_deadline(Seconds target, StopCheck& check) {
  const auto record = [this](Integer deadline, Integer flow) {
    if (!pieces_.empty() && pieces_.back().flow == flow) {
      pieces_.back().end = deadline;
    } else {
      pieces_.push_back({deadline, flow});
    }
  };
  const Integer latest = ticks(std::clamp(target, Seconds(0), t_star_));
  if (auto* const paths = std::get_if<graph::SuccessiveLongestPaths>(&sweep_)) {
    return paths->lower_deadline(latest, record, check);
  }
  return std::get<graph::ParametricLongestPath>(sweep_).lower_deadline(latest, record, check);
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
  for (const int arc : arc_of_computation_) certificate.computation_flow_w.push_back(watts(flow(arc)));
  // A dependency without an arc of its own carries all flow that leaves `before`, or all that enters `after`.
  std::vector<int> outgoing(dag_.computations.size(), 0);
  for (const model::Dependency& d : dag_.dependencies) ++outgoing[d.before];
  for (std::size_t d = 0; d < arc_of_dependency_.size(); ++d) {
    const model::Dependency& dependency = dag_.dependencies[d];
    const int only = outgoing[dependency.before] == 1 ? dependency.before : dependency.after;
    certificate.dependency_flow_w.push_back(arc_of_dependency_[d] < 0 ? certificate.computation_flow_w[only]
                                                                      : watts(flow(arc_of_dependency_[d])));
  }
  return certificate;
}

}  // namespace perseus::planner
