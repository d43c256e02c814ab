#include "server/profiling/choose_clocks.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "planning/planner/choices.h"
#include "planning/planner/relaxation.h"

namespace perseus::profiling {
namespace {

// Draws that the weights come from; deadlines between T_min and the slowest whose prices count.
constexpr int kDraws = 24, kDeadlines = 5;
// Share of a type's weight that goes to clocks that no draw would use.
constexpr double kExploration = 0.02;

void shuffle(std::vector<int>& values, std::mt19937_64& engine) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[engine() % i]);
}

// The value of measuring each clock of a type, in energy, and in time at its price (J/s), summed over plans.
struct Weights {
  std::vector<double> energy;  // occurrences
  std::vector<double> time;    // occurrences times price squared
};

std::vector<Weights> weigh_clocks(const Layout& layout, const PlanningProblem& problem, const TimeEnergyModel& model,
                                  double slowest_deadline, std::mt19937_64& engine, StopCheck& check) {
  std::vector<Weights> weights;
  for (const ProfiledType& type : layout.types) {
    weights.push_back({std::vector<double>(type.clocks.size()), std::vector<double>(type.clocks.size())});
  }
  const model::ComputationDag& dag = problem.reaching();
  const std::vector<model::ComputationDag> draws = problem.draws(kDraws, model, engine);
  const planner::Kinds kinds = planner::make_kinds(dag);
  planner::Relaxation fastest(dag, kinds), relaxation(dag, kinds);
  fastest.lower_deadline(Seconds(0), check);
  if (check.stopped()) return weights;
  const Seconds t_min = fastest.deadline();
  for (int d = 0; d < kDeadlines; ++d) {
    relaxation.lower_deadline(t_min * (slowest_deadline + (1 - slowest_deadline) * d / (kDeadlines - 1)), check);
    if (check.stopped()) return weights;
    for (int i = 0; i < static_cast<int>(dag.computations.size()); ++i) {
      const int dag_type = dag.computations[i].type, t = problem.profiled_type(dag_type);
      const double price = relaxation.price(i).value();
      const double cost_of_time = price - dag.blocking_power_of(i).value();
      if (check.stop(static_cast<long>(draws.size() * draws.front().types[dag_type].options.size()))) return weights;
      for (const model::ComputationDag& draw : draws) {
        const std::vector<model::Measurement>& options = draw.types[dag_type].options;
        std::size_t best = 0;
        double least = INFINITY;
        for (std::size_t o = 0; o < options.size(); ++o) {
          const double cost = options[o].energy.value() + cost_of_time * options[o].time.value();
          if (cost >= least) continue;
          least = cost;
          best = o;
        }
        const std::size_t clock = static_cast<std::size_t>(problem.ranges()[t].first) + best;
        weights[t].energy[clock] += 1;
        weights[t].time[clock] += price * price;
      }
    }
  }
  for (std::size_t t = 0; t < weights.size(); ++t) {
    const ClockRange& range = problem.ranges()[t];
    for (std::vector<double>* const values : {&weights[t].energy, &weights[t].time}) {
      double sum = 0;
      for (const double value : *values) sum += value;
      for (int c = range.first; c <= range.last; ++c) {
        (*values)[c] += kExploration * sum / (range.last - range.first + 1);
      }
    }
  }
  return weights;
}

// Conditions the covariance on the observation of a column with that variance.
void condition(Matrix& covariance, int observed, double variance) {
  const Vector spread = covariance.col(observed);
  covariance.noalias() -= spread * (spread.transpose() / variance);
}

// Reduction of the weighted variance by an observation of that spread and variance.
template <class Spread>
double gain(const Vector& weights, const Spread& spread, double variance) {
  return weights.dot(spread.cwiseAbs2()) / variance;
}

// Weights of logarithms: the value of a relative error in joules squared.
Vector relative_weights(const std::vector<double>& weights, const Vector& logarithms) {
  Vector result = Vector::Zero(logarithms.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] > 0) result[i] = weights[i] * std::exp(2 * logarithms[i]);
  }
  return result;
}

std::vector<int> choose_for_type(const ProfiledType& type, int t, const ClockRange& range, const Weights& weights,
                                 const TimeEnergyModel& model) {
  const Vector energy_weights = relative_weights(weights.energy, model.log_energy(t).mean);
  const Vector time_weights = relative_weights(weights.time, model.log_time(t).mean);
  Matrix energy = model.energy_covariance(t), time = model.time_covariance(t);
  const double energy_noise = model.energy_noise(t) * model.energy_noise(t);
  const double time_noise = model.time_noise(t) * model.time_noise(t);
  std::vector<int> chosen;
  for (int k = 0; k < type.occurrences; ++k) {
    int best = range.first;
    double most = -1;
    for (int c = range.first; c <= range.reach; ++c) {
      const double value = gain(energy_weights, energy.col(c), energy(c, c) + energy_noise) +
                           gain(time_weights, time.col(c), time(c, c) + time_noise);
      if (value <= most) continue;
      most = value;
      best = c;
    }
    condition(energy, best, energy(best, best) + energy_noise);
    condition(time, best, time(best, best) + time_noise);
    chosen.push_back(best);
  }
  return chosen;
}

// One clock per type of the rank: coordinate by coordinate, in two passes.
std::vector<int> choose_for_rank(const Layout& layout, int rank, const PlanningProblem& problem,
                                 const std::vector<Weights>& weights, const TimeEnergyModel& model) {
  const TimeEnergyModel::RankCovariance known = model.rank_energy_covariance(rank);
  Vector energy_weights = Vector::Zero(known.covariance.rows());
  std::vector<int> clocks;
  for (std::size_t k = 0; k < known.types.size(); ++k) {
    const int t = known.types[k];
    const Vector own = relative_weights(weights[t].energy, model.log_energy(t).mean);
    energy_weights.segment(known.begin[k], own.size()) = own;
    const ClockRange& range = problem.ranges()[t];
    clocks.push_back((range.first + range.reach) / 2);
  }
  const auto value_of = [&](const std::vector<int>& choice) {
    Vector share(choice.size());
    for (std::size_t k = 0; k < choice.size(); ++k) {
      const int t = known.types[k];
      share[k] = layout.types[t].occurrences * std::exp(model.log_energy(t).mean[choice[k]]);
    }
    share /= share.sum();
    Vector spread = Vector::Zero(known.covariance.rows());
    double variance = 0;
    for (std::size_t k = 0; k < choice.size(); ++k)
      spread += share[k] * known.covariance.col(known.begin[k] + choice[k]);
    for (std::size_t k = 0; k < choice.size(); ++k) variance += share[k] * spread[known.begin[k] + choice[k]];
    const double noise = model.energy_noise(known.types.front());
    return gain(energy_weights, spread, variance + noise * noise);
  };
  for (int pass = 0; pass < 2; ++pass) {
    for (std::size_t k = 0; k < clocks.size(); ++k) {
      const ClockRange& range = problem.ranges()[known.types[k]];
      std::vector<int> trial = clocks;
      double most = -1;
      for (int c = range.first; c <= range.reach; ++c) {
        trial[k] = c;
        const double value = value_of(trial);
        if (value <= most) continue;
        most = value;
        clocks[k] = c;
      }
    }
  }
  return clocks;
}

}  // namespace

ClockChoice first_clocks(const Layout& layout, double lowest_clock_share, std::mt19937_64& engine) {
  ClockChoice choice;
  for (int t = 0; t < layout.num_types(); ++t) {
    const ProfiledType& type = layout.types[t];
    std::vector<int>& clocks = choice.emplace_back();
    if (!type.has_clock()) {
      clocks.assign(type.occurrences, 0);
      continue;
    }
    const int range = lowest_index(type, std::max(kFirstShare, lowest_clock_share)) + 1;
    const int distinct = std::min(range, std::max(std::min(type.occurrences, 6), type.occurrences / 2));
    // Golden ratio: the offsets of any number of stages are well separated. Both ends are always included.
    const double offset = std::fmod(type.stage * std::numbers::phi, 1.0);
    for (int k = 0; k < type.occurrences; ++k) {
      const int step = k % distinct;
      const double at = step == 0 || step == distinct - 1 ? step : step + (offset - 0.5) * 0.999;
      const int clock = distinct > 1 ? static_cast<int>(std::lround(at * (range - 1) / (distinct - 1))) : 0;
      clocks.push_back(std::clamp(clock, 0, range - 1));
    }
    shuffle(clocks, engine);
  }
  return choice;
}

ClockChoice one_clock_per_rank(const Layout& layout, ClockChoice choice, std::mt19937_64& engine) {
  for (int rank = 0; rank < layout.num_ranks(); ++rank) {
    std::vector<int> chosen;
    for (int t = 0; t < layout.num_types(); ++t) {
      const ProfiledType& type = layout.types[t];
      if (type.rank == rank && type.has_clock()) chosen.insert(chosen.end(), choice[t].begin(), choice[t].end());
    }
    if (chosen.empty()) continue;
    const int clock = chosen[engine() % chosen.size()];
    for (int t = 0; t < layout.num_types(); ++t) {
      const ProfiledType& type = layout.types[t];
      if (type.rank != rank || !type.has_clock()) continue;
      std::ranges::fill(choice[t], std::min(clock, static_cast<int>(type.clocks.size()) - 1));
    }
  }
  return choice;
}

ClockChoice next_clocks(const Layout& layout, const PlanningProblem& problem, TimeEnergyModel model,
                        double slowest_deadline, std::mt19937_64& engine, StopCheck& check) {
  const std::vector<Weights> weights = weigh_clocks(layout, problem, model, slowest_deadline, engine, check);
  ClockChoice choice(layout.types.size());
  for (int rank = 0; rank < layout.num_ranks() && !check.stopped(); ++rank) {
    std::vector<int> own;
    for (int t = 0; t < layout.num_types(); ++t) {
      if (layout.types[t].rank != rank) continue;
      if (layout.types[t].has_clock()) {
        own.push_back(t);
      } else {
        choice[t].assign(layout.types[t].occurrences, 0);
      }
    }
    if (own.empty()) continue;
    if (model.by_iteration()) {
      const std::vector<int> clocks = choose_for_rank(layout, rank, problem, weights, model);
      for (std::size_t k = 0; k < own.size(); ++k) {
        choice[own[k]].assign(layout.types[own[k]].occurrences, clocks[k]);
      }
    } else {
      for (const int t : own) {
        choice[t] = choose_for_type(layout.types[t], t, problem.ranges()[t], weights[t], model);
      }
    }
    std::vector<std::vector<int>> more;
    for (const int t : own) {
      std::vector<int>& counts = more.emplace_back(layout.types[t].clocks.size());
      for (const int clock : choice[t]) ++counts[clock];
      shuffle(choice[t], engine);
    }
    model.expect(rank, more);
    check.stop(StopCheck::kCostBetweenQuestions);
  }
  return choice;
}

}  // namespace perseus::profiling
