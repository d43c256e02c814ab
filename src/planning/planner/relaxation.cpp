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
constexpr std::size_t kSizeOfSteps = 1 << 18;
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

Relaxation::Relaxation(const model::ComputationDag& dag, const Kinds& kinds, Watts price_step)
    : kind_of_computation_(kinds.of_computation), dag_(dag), hulls_(quantized_hulls(kinds)) {
  std::vector<Integer> ends;
  first_deadline_ = model::longest_path(
      model::neighbors_before<Integer>(dag_, [&](const model::Dependency& d) { return ticks(d.latency); }),
      [&](int i) { return hulls_[kind_of_computation_[i]].lengths[0]; }, ends);
  t_star_ = seconds(first_deadline_);
  Integer highest = 0;
  for (const Vertices& hull : hulls_) highest = std::max(highest, hull.thresholds.back());
  const auto step = static_cast<Integer>(
      std::min(price_step.value() / watts_per_unit_, static_cast<double>(highest) / kFewestPrices));
  number_events();
  add_arcs(step > 0 ? coarsened(step) : hulls_);
  for (const std::vector<int>& order : dag.rank_order) {
    for (const int i : order) least_energy_ += kinds.sets[kind_of_computation_[i]].pareto.front().effective_energy;
  }
  if (step > 0) {
    sweep_.emplace<graph::SuccessiveLongestPaths>(network_);
    lines_.push_back({0, 0, first_deadline_});
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
    std::vector<int>& choices = choices_.emplace_back();
    for (std::size_t j = 0; j < set.hull.size(); ++j) {
      const Integer length = ticks(set.pareto[set.hull[j]].time);
      const auto price = static_cast<Integer>(std::llround(prices_w[k][j] / watts_per_unit_));
      // Vertices closer than a quantum in time or price merge into the faster one.
      if (j > 0 && (length == own.lengths.back() || price <= own.thresholds.back())) {
        own.lengths.back() = length;
        choices.back() = set.hull[j];
        continue;
      }
      own.lengths.push_back(length);
      own.thresholds.push_back(price);
      choices.push_back(set.hull[j]);
    }
  }
  return all;
}

std::vector<Relaxation::Vertices> Relaxation::coarsened(Integer step) {
  std::vector<Vertices> all;
  for (std::size_t kind = 0; kind < hulls_.size(); ++kind) {
    const auto& [lengths, thresholds] = hulls_[kind];
    const std::vector<int> choices = std::exchange(choices_[kind], {choices_[kind][0]});
    Vertices& coarse = all.emplace_back(Vertices{{lengths[0]}, {0}});
    for (std::size_t j = 1; j < lengths.size(); ++j) {
      const Integer threshold = std::max(step, (thresholds[j] + step / 2) / step * step);
      if (coarse.thresholds.back() == threshold) {
        coarse.lengths.back() = lengths[j];
        choices_[kind].back() = choices[j];
      } else {
        coarse.thresholds.push_back(threshold);
        coarse.lengths.push_back(lengths[j]);
        choices_[kind].push_back(choices[j]);
      }
    }
  }
  return all;
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
      kind_of_arc_.resize(network_.num_arcs(), -1);
      kind_of_arc_.back() = kind_of_computation_[i];
      for (const model::Neighbor<Integer>& next : after.of(i)) {
        const int from = end_node_[i], to = start_node_[next.computation];
        arc_of_dependency_[next.dependency] = from == to ? -1 : network_.add_arc(from, to, next.latency);
      }
    }
  }
  kind_of_arc_.resize(network_.num_arcs(), -1);
}

double Relaxation::proven_by(const graph::SuccessiveLongestPaths::FlowChange& change) const {
  const int kind = kind_of_arc_[change.arc];
  const auto [from, to] = std::minmax(change.before, change.after);
  double sum = 0;
  if (kind < 0) {
    sum = static_cast<double>(network_.length[network_.first[change.arc]]) * static_cast<double>(to - from);
  } else {
    const auto& [lengths, thresholds] = hulls_[kind];
    auto next = static_cast<std::size_t>(std::ranges::upper_bound(thresholds, from) - thresholds.begin());
    for (Integer at = from; at < to; ++next) {
      const Integer end = next < thresholds.size() ? std::min(to, thresholds[next]) : to;
      sum += static_cast<double>(lengths[next - 1]) * static_cast<double>(end - at);
      at = end;
    }
  }
  return change.after > change.before ? sum : -sum;
}

void Relaxation::add_line(Line line) {
  while (lines_.size() > 1 && crossing(lines_.back(), line) >= crossing(lines_[lines_.size() - 2], lines_.back())) {
    lines_.pop_back();
  }
  lines_.push_back(line);
}

bool Relaxation::lower_deadline(Seconds target, StopCheck& check) {
  const Integer latest = ticks(std::clamp(target, Seconds(0), t_star_));
  if (auto* const paths = std::get_if<graph::SuccessiveLongestPaths>(&sweep_)) {
    const auto prove = [&](Integer deadline, Integer flow) {
      for (const auto& change : paths->take_changes()) at_zero_ += proven_by(change);
      if (lines_.back().flow == flow) {
        lines_.back().end = deadline;
      } else if (flow > 0) {
        add_line({flow, at_zero_, deadline});
      }
    };
    return paths->lower_deadline(latest, prove, check);
  }
  const auto record = [this](Integer deadline, Integer flow) {
    if (!pieces_.empty() && pieces_.back().flow == flow) {
      pieces_.back().end = deadline;
    } else {
      pieces_.push_back({deadline, flow});
    }
  };
  return std::get<graph::ParametricLongestPath>(sweep_).lower_deadline(latest, record, check);
}

model::LowerBound Relaxation::curve_of_lines() const {
  const double end = static_cast<double>(deadline_ticks());
  model::LowerBound bound;
  const auto add = [&](double ticks, const Line& line) {
    const double more = line.at_zero - static_cast<double>(line.flow) * ticks;
    bound.vertices.push_back({Seconds(ticks * seconds_per_tick_),
                              least_energy_ + Joules(std::max(0.0, more) * watts_per_unit_ * seconds_per_tick_)});
  };
  double last = static_cast<double>(first_deadline_);
  add(last, lines_.front());
  std::size_t k = 1;
  for (; k < lines_.size(); ++k) {
    const double at = std::round(crossing(lines_[k - 1], lines_[k]));  // whole ticks, so that vertices stay apart
    if (at <= end) break;
    if (at < last) add(last = at, lines_[k]);
  }
  if (end < last) add(end, lines_[k - 1]);
  std::ranges::reverse(bound.vertices);
  return bound;
}

Seconds Relaxation::proven_at(Seconds deadline) const {
  if (lines_.empty()) return deadline;
  const double at = static_cast<double>(ticks(deadline));
  const auto after = std::partition_point(lines_.begin() + 1, lines_.end(),
                                          [&](const Line& line) { return crossing(*(&line - 1), line) > at; });
  return seconds(std::prev(after)->end);
}

model::LowerBound Relaxation::curve() const {
  if (!lines_.empty()) return curve_of_lines();
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
