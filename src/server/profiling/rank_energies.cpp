#include "server/profiling/rank_energies.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace perseus::profiling {
namespace {

// Candidates for the noise of an iteration's energy, and the first guess; number of linearizations of the sums.
constexpr double kIterationNoise[] = {0.002, 0.005, 0.01, 0.02, 0.05};
constexpr double kFirstIterationNoise = 0.01;
constexpr int kLinearizations = 4;
// Prior: blocking power as a share of the average power, and its uncertainty as a factor.
constexpr double kBlockingShare = 0.35;

}  // namespace

RankEnergies::RankEnergies(const Layout& layout, const ClockGrids& grids, const Samples& samples,
                           const std::vector<ProfilingWindow>& windows, std::vector<Vector> log_times,
                           const std::vector<double>& energy_noise)
    : log_times_(std::move(log_times)),
      type_positions_(layout.types.size()),
      power_known_(layout.job.blocking_power.has_value()) {
  make_positions(layout, grids);
  add_rows(layout, samples, windows);
  guess(layout);
  // Log power of computations minus the center, and blocking power over its first guess minus 1.
  std::vector<Vector> estimate(layout.num_ranks(), Vector::Zero(num_positions()));
  noise_ = kFirstIterationNoise;
  for (int round = 0; round < kLinearizations; ++round) {
    std::vector<Linearized> ranks = linearized(estimate);
    add_cells(layout, samples, energy_noise, ranks);
    if (round == 1) noise_ = likeliest_noise(ranks);
    family_.emplace(positions_, observations(ranks, noise_), RareSteps::none);
    for (int rank = 0; rank < layout.num_ranks(); ++rank) estimate[rank] = family_->posterior(rank).mean;
  }
}

/// A curve per (number of earlier occurrences of that instruction on the rank, instruction), numbered alike on all
/// ranks.
void RankEnergies::make_positions(const Layout& layout, const ClockGrids& grids) {
  std::map<std::pair<int, model::Instruction>, int> curve_of;
  std::vector<int> first_position;
  for (const std::vector<int>& types : grids.types_of_rank) {
    std::map<model::Instruction, int> chunk;
    for (const int t : types) {
      const model::Instruction instruction = layout.types[t].instruction;
      const auto [it, is_new] =
          curve_of.try_emplace({chunk[instruction]++, instruction}, static_cast<int>(first_position.size()));
      if (is_new) {
        first_position.push_back(num_positions());
        for (const CurvePosition& p : grids.grids[grids.places[t].grid].positions(it->second)) positions_.push_back(p);
      }
      for (const int p : grids.places[t].positions) type_positions_[t].push_back(first_position[it->second] + p);
    }
  }
  power_position_ = num_positions();
  if (!power_known_) positions_.push_back({0, kLone});
}

void RankEnergies::add_rows(const Layout& layout, const Samples& samples, const std::vector<ProfilingWindow>& windows) {
  for (const IterationEnergy& one : samples.iterations()) {
    Row& row = rows_[{one.rank, one.window, one.iteration}];
    row.energy_j += one.energy_j;
    row.waiting_s += one.waiting_s;
    ++row.replicas;
    const auto [counts, is_new] = counts_.try_emplace({one.rank, one.window});
    if (!is_new) continue;
    for (std::size_t a = 0; a < layout.type_of[one.rank].size(); ++a) {
      const int t = layout.type_of[one.rank][a];
      const ProfiledType& type = layout.types[t];
      if (type.has_clock()) ++counts->second[{t, type.index_of(windows[one.window].clocks[one.rank][a])}];
    }
  }
  for (auto& [key, row] : rows_) {
    row.energy_j /= row.replicas;
    row.waiting_s /= row.replicas;
  }
}

/// The mean power, and the blocking power unless it is known.
void RankEnergies::guess(const Layout& layout) {
  double energy = 0, time = 0;
  for (const auto& [key, row] : rows_) {
    double busy = 0;
    for (const auto& [cell, count] : counts_.at({std::get<0>(key), std::get<1>(key)})) {
      busy += count * std::exp(log_times_[cell.first][cell.second]);
    }
    energy += row.energy_j;
    time += busy + (power_known_ ? 0 : kBlockingShare) * row.waiting_s;
    if (power_known_) energy -= layout.job.blocking_power->value() * row.waiting_s;
  }
  center_ = std::log(std::max(1e-9, energy / time));
  first_power_ = power_known_ ? layout.job.blocking_power->value() : kBlockingShare * std::exp(center_);
}

/// Relative deviations of the iterations' energies from those around the estimate.
std::vector<RankEnergies::Linearized> RankEnergies::linearized(const std::vector<Vector>& around) const {
  std::vector<Linearized> ranks(around.size());
  for (const auto& [key, row] : rows_) {
    const int rank = std::get<0>(key);
    Vector design = Vector::Zero(num_positions());
    double predicted = first_power_ * row.waiting_s;
    for (const auto& [cell, count] : counts_.at({rank, std::get<1>(key)})) {
      const int position = type_positions_[cell.first][cell.second];
      const double joules = count * std::exp(center_ + log_times_[cell.first][cell.second] + around[rank][position]);
      design[position] += joules / row.energy_j;
      predicted += joules;
    }
    if (!power_known_) {
      design[power_position_] = first_power_ * row.waiting_s / row.energy_j;
      predicted += first_power_ * row.waiting_s * around[rank][power_position_];
    }
    ranks[rank].value.push_back((row.energy_j - predicted) / row.energy_j + design.dot(around[rank]));
    ranks[rank].variance.push_back(1.0 / row.replicas);
    ranks[rank].design.push_back(std::move(design));
  }
  return ranks;
}

void RankEnergies::add_cells(const Layout& layout, const Samples& samples, const std::vector<double>& energy_noise,
                             std::vector<Linearized>& ranks) const {
  for (int t = 0; t < layout.num_types(); ++t) {
    const ProfiledType& type = layout.types[t];
    for (std::size_t c = 0; type.has_clock() && c < type.clocks.size(); ++c) {
      const Running& known = samples.cells(t)[c].log_energy;
      if (known.count == 0) continue;
      Linearized& rank = ranks[type.rank];
      rank.design.emplace_back(Vector::Unit(num_positions(), type_positions_[t][c]));
      rank.value.push_back(known.mean - log_times_[t][c] - center_);
      rank.cell_variance.push_back(energy_noise[t] * energy_noise[t] / known.count);
    }
  }
}

std::vector<Observations> RankEnergies::observations(const std::vector<Linearized>& ranks, double noise) const {
  std::vector<Observations> result;
  for (const Linearized& rank : ranks) {
    Observations observed{Matrix(static_cast<int>(rank.design.size()), num_positions()), rank.value, {}};
    for (std::size_t r = 0; r < rank.design.size(); ++r) observed.design.row(r) = rank.design[r];
    for (const double variance : rank.variance) observed.variance.push_back(variance * noise * noise);
    observed.variance.insert(observed.variance.end(), rank.cell_variance.begin(), rank.cell_variance.end());
    result.push_back(std::move(observed));
  }
  return result;
}

double RankEnergies::likeliest_noise(const std::vector<Linearized>& ranks) const {
  double best = -INFINITY, likeliest = noise_;
  for (const double noise : kIterationNoise) {
    const double likelihood = CurveFamily(positions_, observations(ranks, noise), RareSteps::none).log_likelihood();
    if (likelihood <= best) continue;
    best = likelihood;
    likeliest = noise;
  }
  return likeliest;
}

std::optional<std::pair<Watts, Watts>> RankEnergies::blocking_power_and_stddev() const {
  if (power_known_) return std::nullopt;
  const CurveFamily::Posterior posterior = family_->posterior(0);
  const double variance = posterior.covariance(power_position_, power_position_);
  return std::pair(Watts(std::max(0.0, first_power_ * (1 + posterior.mean[power_position_]))),
                   Watts(first_power_ * std::sqrt(std::max(0.0, variance))));
}

std::vector<CurvePosition> ClockGrid::positions(int curve) const {
  std::vector<CurvePosition> positions;
  positions.reserve(clocks.size());
  for (const Megahertz clock : clocks) {
    positions.push_back({std::log(static_cast<double>(clock.value()) / clocks.front().value()), curve});
  }
  return positions;
}

ClockGrids::ClockGrids(const Layout& layout) : places(layout.types.size()), types_of_rank(layout.num_ranks()) {
  std::map<model::Instruction, int> index;
  for (int t = 0; t < layout.num_types(); ++t) {
    const ProfiledType& type = layout.types[t];
    if (!type.has_clock()) continue;
    types_of_rank[type.rank].push_back(t);
    const auto [it, is_new] = index.try_emplace(type.instruction, static_cast<int>(grids.size()));
    if (is_new) grids.emplace_back();
    ClockGrid& grid = grids[it->second];
    places[t].grid = it->second;
    places[t].member = static_cast<int>(grid.types.size());
    grid.types.push_back(t);
    grid.clocks.insert(grid.clocks.end(), type.clocks.begin(), type.clocks.end());
  }
  for (ClockGrid& grid : grids) {
    std::ranges::sort(grid.clocks, std::greater{});
    grid.clocks.erase(std::unique(grid.clocks.begin(), grid.clocks.end()), grid.clocks.end());
    for (const int t : grid.types) {
      for (const Megahertz clock : layout.types[t].clocks) {
        places[t].positions.push_back(static_cast<int>(std::ranges::find(grid.clocks, clock) - grid.clocks.begin()));
      }
    }
  }
}

}  // namespace perseus::profiling
