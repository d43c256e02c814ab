#include "server/profiling/time_energy_model.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace perseus::profiling {
namespace {

/// Variance of the mean of this many values; infinite without values.
std::vector<double> variances(const std::vector<int>& counts, double noise) {
  std::vector<double> result;
  result.reserve(counts.size());
  for (const int count : counts) result.push_back(count > 0 ? noise * noise / count : INFINITY);
  return result;
}

Vector part_of(const Vector& values, const std::vector<int>& positions, double shift) {
  return values(positions).array() + shift;
}

TimeEnergyModel::Curve part_of(const CurveFamily::Posterior& posterior, const std::vector<int>& positions,
                               double shift) {
  return {part_of(posterior.mean, positions, shift), posterior.covariance(positions, positions)};
}

}  // namespace

TimeEnergyModel::TimeEnergyModel(const Layout& layout, const Samples& samples,
                                 const std::vector<ProfilingWindow>& windows)
    : grids_(layout), groups_(grids_.grids.size()), log_time_(layout.types.size()), log_energy_(layout.types.size()) {
  for (int t = 0; t < layout.num_types(); ++t) {
    time_noise_.push_back(samples.time_noise(t));
    energy_noise_.push_back(samples.energy_noise(t));
    std::vector<int>&times = time_counts_.emplace_back(), &energies = energy_counts_.emplace_back();
    for (const Cell& cell : samples.cells(t)) {
      times.push_back(cell.log_time.count);
      energies.push_back(cell.log_energy.count);
    }
  }
  fit_times(samples);
  if (samples.by_iteration()) {
    fit_iterations(layout, samples, windows);
  } else {
    fit_energies(samples);
    estimate_blocking_power(layout, samples);
  }
  set_constant_types(layout, samples);
}

Observations TimeEnergyModel::cell_observations(int type, const std::vector<double>& variance,
                                                const std::vector<double>& value) const {
  const PlaceInGrid& place = grids_.places[type];
  const auto rows = std::ranges::count_if(variance, [](double v) { return std::isfinite(v); });
  Observations observations{
      Matrix::Zero(rows, static_cast<Eigen::Index>(grids_.grids[place.grid].clocks.size())), {}, {}};
  for (std::size_t c = 0; c < variance.size(); ++c) {
    if (!std::isfinite(variance[c])) continue;
    observations.design(static_cast<Eigen::Index>(observations.value.size()), place.positions[c]) = 1;
    observations.value.push_back(value[c]);
    observations.variance.push_back(variance[c]);
  }
  return observations;
}

void TimeEnergyModel::fit_times(const Samples& samples) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    Group& group = groups_[g];
    const ClockGrid& grid = grids_.grids[g];
    double sum = 0, count = 0;
    for (const int t : grid.types) {
      for (const Cell& cell : samples.cells(t)) {
        sum += cell.log_time.mean * cell.log_time.count;
        count += cell.log_time.count;
      }
    }
    group.time_center = count > 0 ? sum / count : 0;
    std::vector<Observations> members;
    for (const int t : grid.types) {
      std::vector<double> values;
      for (const Cell& cell : samples.cells(t)) values.push_back(cell.log_time.mean - group.time_center);
      members.push_back(cell_observations(t, variances(time_counts_[t], time_noise_[t]), values));
    }
    group.time.emplace(grid.positions(0), std::move(members), RareSteps::possible);
    for (const int t : grid.types) {
      const PlaceInGrid& place = grids_.places[t];
      log_time_[t] = part_of(group.time->posterior(place.member), place.positions, group.time_center);
    }
  }
}

void TimeEnergyModel::fit_energies(const Samples& samples) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    Group& group = groups_[g];
    const ClockGrid& grid = grids_.grids[g];
    double sum = 0, count = 0;
    for (const int t : grid.types) {
      for (std::size_t c = 0; c < samples.cells(t).size(); ++c) {
        const Running& energy = samples.cells(t)[c].log_energy;
        sum += (energy.mean - log_time_[t].mean[c]) * energy.count;
        count += energy.count;
      }
    }
    group.power_center = count > 0 ? sum / count : 0;
    std::vector<Observations> members;
    for (const int t : grid.types) {
      std::vector<double> values;
      for (std::size_t c = 0; c < samples.cells(t).size(); ++c) {
        values.push_back(samples.cells(t)[c].log_energy.mean - log_time_[t].mean[c] - group.power_center);
      }
      members.push_back(cell_observations(t, variances(energy_counts_[t], energy_noise_[t]), values));
    }
    group.power.emplace(grid.positions(0), std::move(members), RareSteps::possible);
    for (const int t : grid.types) {
      const PlaceInGrid& place = grids_.places[t];
      log_energy_[t] = part_of(group.power->posterior(place.member), place.positions, group.power_center);
      log_energy_[t].mean += log_time_[t].mean;
    }
  }
}

void TimeEnergyModel::fit_iterations(const Layout& layout, const Samples& samples,
                                     const std::vector<ProfilingWindow>& windows) {
  std::vector<Vector> log_times;
  for (const Curve& curve : log_time_) log_times.push_back(curve.mean);
  ranks_.emplace(layout, grids_, samples, windows, std::move(log_times), energy_noise_);
  for (int rank = 0; rank < layout.num_ranks(); ++rank) {
    const CurveFamily::Posterior posterior = ranks_->posterior(rank);
    for (const int t : grids_.types_of_rank[rank]) {
      log_energy_[t] = part_of(posterior, ranks_->positions(t), ranks_->center());
      log_energy_[t].mean += log_time_[t].mean;
    }
  }
  if (const auto power = ranks_->blocking_power_and_stddev()) {
    std::tie(blocking_power_, blocking_power_stddev_) = *power;
  } else {
    blocking_power_ = *layout.job.blocking_power;
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

void TimeEnergyModel::set_constant_types(const Layout& layout, const Samples& samples) {
  for (int t = 0; t < layout.num_types(); ++t) {
    if (layout.types[t].has_clock()) continue;
    const auto curve = [](const Running& known, double noise) {
      const double variance = known.count > 0 ? noise * noise / known.count : 0;
      return Curve{Vector::Constant(1, known.mean), Matrix::Constant(1, 1, variance)};
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
  for (std::size_t t = 0; t < log_time_.size(); ++t) {
    mean.log_time.push_back(log_time_[t].mean);
    mean.log_energy.push_back(log_energy_[t].mean);
  }
  std::vector<Draw> draws(count, mean);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const Group& group = groups_[g];
    const auto times = group.time->draws(count, engine);
    for (int k = 0; k < count; ++k) {
      for (const int t : grids_.grids[g].types) {
        const PlaceInGrid& place = grids_.places[t];
        draws[k].log_time[t] = part_of(times[k][place.member], place.positions, group.time_center);
      }
    }
    if (!group.power) continue;
    const auto powers = group.power->draws(count, engine);
    for (int k = 0; k < count; ++k) {
      for (const int t : grids_.grids[g].types) {
        const PlaceInGrid& place = grids_.places[t];
        draws[k].log_energy[t] =
            part_of(powers[k][place.member], place.positions, group.power_center) + log_time_[t].mean;
      }
    }
  }
  if (!ranks_) return draws;
  const auto powers = ranks_->draws(count, engine);
  for (int k = 0; k < count; ++k) {
    for (std::size_t rank = 0; rank < grids_.types_of_rank.size(); ++rank) {
      for (const int t : grids_.types_of_rank[rank]) {
        draws[k].log_energy[t] = part_of(powers[k][rank], ranks_->positions(t), ranks_->center()) + log_time_[t].mean;
      }
    }
  }
  return draws;
}

}  // namespace perseus::profiling
