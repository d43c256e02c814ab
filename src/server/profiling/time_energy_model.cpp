#include "server/profiling/time_energy_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

namespace perseus::profiling {
namespace {

// Candidates for the noise of an iteration's energy; number of linearizations of the sums.
constexpr double kIterationNoise[] = {0.002, 0.005, 0.01, 0.02, 0.05};
constexpr int kLinearizations = 4;
// Prior: blocking power as a share of the average power, and its uncertainty as a factor.
constexpr double kBlockingShare = 0.35;

double log_share(Megahertz clock, Megahertz highest) {
  return std::log(static_cast<double>(clock.value()) / highest.value());
}

Matrix part_of(const Matrix& matrix, const std::vector<int>& positions) {
  const int n = static_cast<int>(positions.size());
  Matrix part(n, n);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) part(i, j) = matrix(positions[i], positions[j]);
  }
  return part;
}

std::vector<double> part_of(const std::vector<double>& values, const std::vector<int>& positions, double shift) {
  std::vector<double> part;
  part.reserve(positions.size());
  for (const int position : positions) part.push_back(values[position] + shift);
  return part;
}

}  // namespace

TimeEnergyModel::TimeEnergyModel(const Layout& layout, const Samples& samples,
                                 const std::vector<ProfilingWindow>& windows)
    : places_(layout.types.size()),
      log_time_(layout.types.size()),
      log_energy_(layout.types.size()),
      types_of_rank_(layout.num_ranks()) {
  for (int t = 0; t < layout.num_types(); ++t) {
    time_noise_.push_back(samples.time_noise(t));
    energy_noise_.push_back(samples.energy_noise(t));
    std::vector<int>&times = time_counts_.emplace_back(), &energies = energy_counts_.emplace_back();
    for (const Cell& cell : samples.cells(t)) {
      times.push_back(cell.log_time.count);
      energies.push_back(cell.log_energy.count);
    }
    if (layout.types[t].has_clock()) types_of_rank_[layout.types[t].rank].push_back(t);
  }
  by_iteration_ = samples.by_iteration();
  make_groups(layout, samples);
  fit_times(layout, samples);
  if (by_iteration_) {
    fit_iterations(layout, samples, windows);
  } else {
    fit_energies(layout, samples);
    estimate_blocking_power(layout, samples);
  }
  set_constant_types(layout, samples);
}

void TimeEnergyModel::make_groups(const Layout& layout, const Samples& samples) {
  std::map<model::Instruction, int> index;
  for (int t = 0; t < layout.num_types(); ++t) {
    const ProfiledType& type = layout.types[t];
    if (!type.has_clock()) continue;
    const auto [it, is_new] = index.try_emplace(type.instruction, static_cast<int>(groups_.size()));
    if (is_new) groups_.emplace_back();
    Group& group = groups_[it->second];
    places_[t].group = it->second;
    places_[t].member = static_cast<int>(group.types.size());
    group.types.push_back(t);
    group.grid.insert(group.grid.end(), type.clocks.begin(), type.clocks.end());
  }
  for (Group& group : groups_) {
    std::ranges::sort(group.grid, std::greater{});
    group.grid.erase(std::unique(group.grid.begin(), group.grid.end()), group.grid.end());
    double sum = 0, count = 0;
    for (const int t : group.types) {
      for (const Megahertz clock : layout.types[t].clocks) {
        places_[t].positions.push_back(static_cast<int>(std::ranges::find(group.grid, clock) - group.grid.begin()));
      }
      for (const Cell& cell : samples.cells(t)) {
        sum += cell.log_time.mean * cell.log_time.count;
        count += cell.log_time.count;
      }
    }
    group.time_center = count > 0 ? sum / count : 0;
  }
}

Observations TimeEnergyModel::cell_observations(int type, const std::vector<double>& variance,
                                                const std::vector<double>& value) const {
  const Place& place = places_[type];
  const int columns = static_cast<int>(groups_[place.group].grid.size());
  const auto rows = std::ranges::count_if(variance, [](double v) { return std::isfinite(v); });
  Observations observations{Matrix(static_cast<int>(rows), columns), {}, {}};
  for (std::size_t c = 0; c < variance.size(); ++c) {
    if (!std::isfinite(variance[c])) continue;
    observations.design(static_cast<int>(observations.value.size()), place.positions[c]) = 1;
    observations.value.push_back(value[c]);
    observations.variance.push_back(variance[c]);
  }
  return observations;
}

namespace {

// Variance of the mean of this many values; infinite without values.
std::vector<double> variances(const std::vector<int>& counts, double noise) {
  std::vector<double> result;
  result.reserve(counts.size());
  for (const int count : counts) result.push_back(count > 0 ? noise * noise / count : INFINITY);
  return result;
}

std::vector<CurvePosition> positions_of(const std::vector<Megahertz>& grid, int curve) {
  std::vector<CurvePosition> positions;
  positions.reserve(grid.size());
  for (const Megahertz clock : grid) positions.push_back({log_share(clock, grid.front()), curve});
  return positions;
}

}  // namespace

void TimeEnergyModel::fit_times(const Layout& /*layout*/, const Samples& samples) {
  for (Group& group : groups_) {
    std::vector<Observations> members;
    for (const int t : group.types) {
      std::vector<double> values;
      for (const Cell& cell : samples.cells(t)) values.push_back(cell.log_time.mean - group.time_center);
      members.push_back(cell_observations(t, variances(time_counts_[t], time_noise_[t]), values));
    }
    group.time.emplace(positions_of(group.grid, 0), std::move(members));
    for (const int t : group.types) {
      const CurveFamily::Posterior posterior = group.time->posterior(places_[t].member);
      log_time_[t] = {part_of(posterior.mean, places_[t].positions, group.time_center),
                      part_of(posterior.covariance, places_[t].positions)};
    }
  }
}

void TimeEnergyModel::fit_energies(const Layout& /*layout*/, const Samples& samples) {
  for (Group& group : groups_) {
    double sum = 0, count = 0;
    for (const int t : group.types) {
      for (std::size_t c = 0; c < samples.cells(t).size(); ++c) {
        const Running& energy = samples.cells(t)[c].log_energy;
        sum += (energy.mean - log_time_[t].mean[c]) * energy.count;
        count += energy.count;
      }
    }
    group.power_center = count > 0 ? sum / count : 0;
    std::vector<Observations> members;
    for (const int t : group.types) {
      std::vector<double> values;
      for (std::size_t c = 0; c < samples.cells(t).size(); ++c) {
        values.push_back(samples.cells(t)[c].log_energy.mean - log_time_[t].mean[c] - group.power_center);
      }
      members.push_back(cell_observations(t, variances(energy_counts_[t], energy_noise_[t]), values));
    }
    group.power.emplace(positions_of(group.grid, 0), std::move(members));
    for (const int t : group.types) {
      const CurveFamily::Posterior posterior = group.power->posterior(places_[t].member);
      log_energy_[t] = {part_of(posterior.mean, places_[t].positions, group.power_center),
                        part_of(posterior.covariance, places_[t].positions)};
      for (std::size_t c = 0; c < log_energy_[t].mean.size(); ++c) log_energy_[t].mean[c] += log_time_[t].mean[c];
    }
  }
}

void TimeEnergyModel::estimate_blocking_power(const Layout& layout, const Samples& samples) {
  if (layout.job.blocking_power) {
    blocking_power_ = *layout.job.blocking_power;
    return;
  }
  // Remaining energy per second of waiting, each iteration weighted by its information.
  double waiting = 0, cross = 0, squares = 0;
  int count = 0;
  for (const IterationEnergy& row : samples.iterations()) {
    waiting += row.waiting_s * row.waiting_s;
    cross += row.waiting_s * (row.energy_j - row.computing_j);
    ++count;
  }
  if (waiting <= 0) return;
  const double power = std::max(0.0, cross / waiting);
  for (const IterationEnergy& row : samples.iterations()) {
    const double residual = row.energy_j - row.computing_j - power * row.waiting_s;
    squares += residual * residual;
  }
  blocking_power_ = Watts(power);
  blocking_power_stddev_ = Watts(count > 1 ? std::sqrt(squares / (count - 1) / waiting) : power);
}

void TimeEnergyModel::fit_iterations(const Layout& layout, const Samples& samples,
                                     const std::vector<ProfilingWindow>& windows) {
  // Replicas of one iteration ran the same clocks: their mean is one observation.
  struct Row {
    double energy_j = 0, waiting_s = 0;
    int replicas = 0;
  };
  std::map<std::tuple<int, int, int>, Row> rows;
  double energy = 0, time = 0;
  for (const IterationEnergy& one : samples.iterations()) {
    Row& row = rows[{one.rank, one.window, one.iteration}];
    row.energy_j += one.energy_j;
    row.waiting_s += one.waiting_s;
    ++row.replicas;
  }

  // A curve per (number of earlier occurrences of that instruction on the rank, instruction), numbered alike on all
  // ranks.
  std::map<std::pair<int, model::Instruction>, int> curve_of;
  std::vector<CurvePosition> positions;
  std::vector<int> first_position;
  for (int rank = 0; rank < layout.num_ranks(); ++rank) {
    std::map<model::Instruction, int> chunk;
    for (const int t : types_of_rank_[rank]) {
      const model::Instruction instruction = layout.types[t].instruction;
      const auto [it, is_new] =
          curve_of.try_emplace({chunk[instruction]++, instruction}, static_cast<int>(first_position.size()));
      if (is_new) {
        first_position.push_back(static_cast<int>(positions.size()));
        for (const CurvePosition& p : positions_of(groups_[places_[t].group].grid, it->second)) positions.push_back(p);
      }
      places_[t].rank_member = rank;
      for (const int p : places_[t].positions) places_[t].rank_positions.push_back(first_position[it->second] + p);
    }
  }
  const bool power_known = layout.job.blocking_power.has_value();
  const int power_position = static_cast<int>(positions.size());
  if (!power_known) positions.push_back({0, kLone});
  const int columns = static_cast<int>(positions.size());

  // How often each rank's iteration runs each type at each clock.
  const auto counts_in = [&](int rank, const ProfilingWindow& window) {
    std::map<std::pair<int, int>, int> counts;
    for (std::size_t a = 0; a < layout.type_of[rank].size(); ++a) {
      const int t = layout.type_of[rank][a];
      if (layout.types[t].has_clock()) ++counts[{t, layout.types[t].index_of(window.clocks[rank][a])}];
    }
    return counts;
  };
  for (const auto& [key, row] : rows) {
    const int rank = std::get<0>(key);
    double busy = 0;
    for (const auto& [cell, count] : counts_in(rank, windows[std::get<1>(key)])) {
      busy += count * std::exp(log_time_[cell.first].mean[cell.second]);
    }
    energy += row.energy_j / row.replicas;
    time += busy + (power_known ? 0 : kBlockingShare) * row.waiting_s / row.replicas;
    if (power_known) energy -= layout.job.blocking_power->value() * row.waiting_s / row.replicas;
  }
  rank_center_ = std::log(std::max(1e-9, energy / time));
  const double first_power = power_known ? layout.job.blocking_power->value() : kBlockingShare * std::exp(rank_center_);

  // z is log power of computations minus the center, and blocking power over its first guess minus 1.
  std::vector<std::vector<double>> z(layout.num_ranks(), std::vector<double>(columns));
  for (int round = 0; round < kLinearizations; ++round) {
    std::vector<Observations> members(layout.num_ranks());
    std::vector<std::vector<std::vector<double>>> designs(layout.num_ranks());
    for (const auto& [key, row] : rows) {
      const int rank = std::get<0>(key);
      std::vector<double> design(columns);
      const double seen = row.energy_j / row.replicas, waiting = row.waiting_s / row.replicas;
      double predicted = first_power * waiting;
      for (const auto& [cell, count] : counts_in(rank, windows[std::get<1>(key)])) {
        const int position = places_[cell.first].rank_positions[cell.second];
        const double joules =
            count * std::exp(rank_center_ + log_time_[cell.first].mean[cell.second] + z[rank][position]);
        design[position] += joules / seen;
        predicted += joules;
      }
      if (!power_known) {
        design[power_position] = first_power * waiting / seen;
        predicted += first_power * waiting * z[rank][power_position];
      }
      members[rank].value.push_back((seen - predicted) / seen + dot(design, z[rank]));
      members[rank].variance.push_back(1.0 / row.replicas);
      designs[rank].push_back(std::move(design));
    }
    // Windows with energies broken down count too.
    std::vector<std::vector<double>> cell_variance(layout.num_ranks());
    for (int t = 0; t < layout.num_types(); ++t) {
      const ProfiledType& type = layout.types[t];
      for (std::size_t c = 0; type.has_clock() && c < type.clocks.size(); ++c) {
        const Running& known = samples.cells(t)[c].log_energy;
        if (known.count == 0) continue;
        std::vector<double> design(columns);
        design[places_[t].rank_positions[c]] = 1;
        designs[type.rank].push_back(std::move(design));
        members[type.rank].value.push_back(known.mean - log_time_[t].mean[c] - rank_center_);
        cell_variance[type.rank].push_back(energy_noise_[t] * energy_noise_[t] / known.count);
      }
    }
    for (int rank = 0; rank < layout.num_ranks(); ++rank) {
      Observations& member = members[rank];
      member.design = Matrix(static_cast<int>(designs[rank].size()), columns);
      for (int r = 0; r < member.design.rows(); ++r) std::ranges::copy(designs[rank][r], member.design.row(r).begin());
    }
    const auto with_noise = [&](double noise) {
      std::vector<Observations> result = members;
      for (int rank = 0; rank < layout.num_ranks(); ++rank) {
        for (double& variance : result[rank].variance) variance *= noise * noise;
        result[rank].variance.insert(result[rank].variance.end(), cell_variance[rank].begin(),
                                     cell_variance[rank].end());
      }
      return result;
    };
    if (round == 0) iteration_noise_ = 0.01;
    if (round == 1) {
      double best = -INFINITY;
      for (const double noise : kIterationNoise) {
        const double likelihood = CurveFamily(positions, with_noise(noise)).log_likelihood();
        if (likelihood <= best) continue;
        best = likelihood;
        iteration_noise_ = noise;
      }
    }
    rank_observations_ = with_noise(iteration_noise_);
    ranks_.emplace(positions, rank_observations_);
    for (int rank = 0; rank < layout.num_ranks(); ++rank) z[rank] = ranks_->posterior(rank).mean;
  }
  for (int rank = 0; rank < layout.num_ranks(); ++rank) {
    const CurveFamily::Posterior posterior = ranks_->posterior(rank);
    for (const int t : types_of_rank_[rank]) {
      log_energy_[t] = {part_of(posterior.mean, places_[t].rank_positions, rank_center_),
                        part_of(posterior.covariance, places_[t].rank_positions)};
      for (std::size_t c = 0; c < log_energy_[t].mean.size(); ++c) log_energy_[t].mean[c] += log_time_[t].mean[c];
    }
    if (power_known || rank > 0) continue;
    blocking_power_ = Watts(std::max(0.0, first_power * (1 + posterior.mean[power_position])));
    blocking_power_stddev_ =
        Watts(first_power * std::sqrt(std::max(0.0, posterior.covariance(power_position, power_position))));
  }
  if (power_known) blocking_power_ = *layout.job.blocking_power;
}

void TimeEnergyModel::set_constant_types(const Layout& layout, const Samples& samples) {
  for (int t = 0; t < layout.num_types(); ++t) {
    if (layout.types[t].has_clock()) continue;
    const auto curve = [](const Running& known, double noise) {
      Curve result{{known.mean}, Matrix(1, 1)};
      result.covariance(0, 0) = known.count > 0 ? noise * noise / known.count : 0;
      return result;
    };
    const Cell& cell = samples.cells(t).front();
    log_time_[t] = curve(cell.log_time, time_noise_[t]);
    log_energy_[t] = curve(cell.log_energy, energy_noise_[t]);
    // Not measured separately: such operations mostly wait for memory or the network.
    if (cell.log_energy.count == 0) {
      log_energy_[t].mean[0] = cell.log_time.mean + std::log(std::max(1e-9, blocking_power_.value()));
    }
  }
}

std::vector<TimeEnergyModel::Draw> TimeEnergyModel::draws(int count, std::mt19937_64& engine) const {
  Draw mean;
  for (std::size_t t = 0; t < places_.size(); ++t) {
    mean.log_time.push_back(log_time_[t].mean);
    mean.log_energy.push_back(log_energy_[t].mean);
  }
  std::vector<Draw> draws(count, mean);
  for (const Group& group : groups_) {
    const auto times = group.time->draws(count, engine);
    for (int k = 0; k < count; ++k) {
      for (const int t : group.types) {
        draws[k].log_time[t] = part_of(times[k][places_[t].member], places_[t].positions, group.time_center);
      }
    }
    if (!group.power) continue;
    const auto powers = group.power->draws(count, engine);
    for (int k = 0; k < count; ++k) {
      for (const int t : group.types) {
        draws[k].log_energy[t] = part_of(powers[k][places_[t].member], places_[t].positions, group.power_center);
        for (std::size_t c = 0; c < draws[k].log_energy[t].size(); ++c) {
          draws[k].log_energy[t][c] += log_time_[t].mean[c];
        }
      }
    }
  }
  if (!ranks_) return draws;
  const auto powers = ranks_->draws(count, engine);
  for (int k = 0; k < count; ++k) {
    for (std::size_t rank = 0; rank < types_of_rank_.size(); ++rank) {
      for (const int t : types_of_rank_[rank]) {
        draws[k].log_energy[t] = part_of(powers[k][rank], places_[t].rank_positions, rank_center_);
        for (std::size_t c = 0; c < draws[k].log_energy[t].size(); ++c) {
          draws[k].log_energy[t][c] += log_time_[t].mean[c];
        }
      }
    }
  }
  return draws;
}

void TimeEnergyModel::expect(int rank, const std::vector<std::vector<int>>& more) {
  std::vector<double> row;
  double energy = 0;
  if (ranks_) row.resize(rank_observations_[rank].design.columns());
  for (std::size_t k = 0; k < types_of_rank_[rank].size(); ++k) {
    const int t = types_of_rank_[rank][k];
    Group& group = groups_[places_[t].group];
    for (std::size_t c = 0; c < more[k].size(); ++c) {
      time_counts_[t][c] += more[k][c];
      energy_counts_[t][c] += more[k][c];
      if (!ranks_ || more[k][c] == 0) continue;
      const double joules = more[k][c] * std::exp(log_energy_[t].mean[c]);
      row[places_[t].rank_positions[c]] += joules;
      energy += joules;
    }
    const std::vector<double> nothing(more[k].size());
    group.time->replace(places_[t].member, cell_observations(t, variances(time_counts_[t], time_noise_[t]), nothing));
    if (group.power) {
      group.power->replace(places_[t].member,
                           cell_observations(t, variances(energy_counts_[t], energy_noise_[t]), nothing));
    }
  }
  if (!ranks_) return;
  Observations& observations = rank_observations_[rank];
  Matrix design(observations.design.rows() + 1, observations.design.columns());
  for (int r = 0; r < observations.design.rows(); ++r) {
    std::ranges::copy(observations.design.row(r), design.row(r).begin());
  }
  for (int i = 0; i < design.columns(); ++i) design(design.rows() - 1, i) = row[i] / energy;
  observations.design = std::move(design);
  observations.value.push_back(0);
  observations.variance.push_back(iteration_noise_ * iteration_noise_);
  ranks_->replace(rank, observations);
}

Matrix TimeEnergyModel::time_covariance(int type) const {
  const Place& place = places_[type];
  return part_of(groups_[place.group].time->covariance(place.member), place.positions);
}

Matrix TimeEnergyModel::energy_covariance(int type) const {
  const Place& place = places_[type];
  return part_of(groups_[place.group].power->covariance(place.member), place.positions);
}

TimeEnergyModel::RankCovariance TimeEnergyModel::rank_energy_covariance(int rank) const {
  RankCovariance result{types_of_rank_[rank], {}, {}};
  std::vector<int> positions;
  for (const int t : result.types) {
    result.begin.push_back(static_cast<int>(positions.size()));
    positions.insert(positions.end(), places_[t].rank_positions.begin(), places_[t].rank_positions.end());
  }
  result.covariance = part_of(ranks_->covariance(rank), positions);
  return result;
}

}  // namespace perseus::profiling
