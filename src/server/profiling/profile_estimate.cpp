#include "server/profiling/profile_estimate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/profiling/planning.h"

namespace perseus::profiling {

ProfileEstimate profile_estimate(const Layout& layout, const Samples& samples, const TimeEnergyModel& model,
                                 const ProfilingOptions& options) {
  const std::vector<ClockRange> ranges = clock_ranges(layout, samples, options.lowest_clock_share);
  const std::vector<ReplicaFactors> factors = replica_factors(layout, samples);
  const bool plain = options.mode == ProfilingMode::plain;

  ProfileEstimate estimate;
  estimate.profile.accelerators.assign(layout.job.schedule.num_stages, 1);
  estimate.blocking_power = model.blocking_power();
  estimate.blocking_power_stddev = model.blocking_power_stddev();
  estimate.energies_by_iteration = model.by_iteration();
  for (int t = 0; t < layout.num_types(); ++t) {
    const ProfiledType& type = layout.types[t];
    const std::vector<Cell>& cells = samples.cells(t);
    if (!type.has_clock() && cells.front().log_time.count == 0) continue;
    estimate.profile.accelerators[type.stage] = layout.replicas(type.rank);
    estimate.time_noise_pct = std::max(estimate.time_noise_pct, 100 * model.time_noise(t));
    estimate.energy_noise_pct = std::max(estimate.energy_noise_pct, 100 * model.energy_noise(t));
    model::ProfileEntry entry{type.stage, std::string(model::name_of(type.instruction)), {}};
    std::vector<ProfileSource> sources;
    for (int c = 0; c < static_cast<int>(type.clocks.size()); ++c) {
      const Cell& cell = cells[c];
      double log_time = model.log_time(t).mean[c], log_energy = model.log_energy(t).mean[c];
      double time_stddev = std::sqrt(std::max(0.0, model.log_time(t).covariance(c, c)));
      double energy_stddev = std::sqrt(std::max(0.0, model.log_energy(t).covariance(c, c)));
      if (plain && cell.log_energy.count > 0) {  // as published: the average only
        log_time = cell.log_time.mean;
        log_energy = cell.log_energy.mean;
        time_stddev = model.time_noise(t) / std::sqrt(cell.log_time.count);
        energy_stddev = model.energy_noise(t) / std::sqrt(cell.log_energy.count);
      }
      const Seconds time(std::exp(log_time) * factors[t].time);
      const Joules energy(std::exp(log_energy) * factors[t].energy);
      entry.measurements.push_back(
          {type.clocks[c], time, energy, time * time_stddev, energy * energy_stddev, std::max(1, cell.log_time.count)});
      sources.push_back(cell.log_time.count > 0                     ? ProfileSource::measured
                        : c < ranges[t].first || c > ranges[t].last ? ProfileSource::extrapolated
                                                                    : ProfileSource::interpolated);
    }
    estimate.profile.entries.push_back(std::move(entry));
    estimate.sources.push_back(std::move(sources));
  }
  return estimate;
}

model::Profile for_planning(const ProfileEstimate& estimate) {
  model::Profile profile;
  profile.accelerators = estimate.profile.accelerators;
  for (std::size_t e = 0; e < estimate.profile.entries.size(); ++e) {
    model::ProfileEntry entry = estimate.profile.entries[e];
    std::vector<model::Measurement> kept;
    for (std::size_t c = 0; c < entry.measurements.size(); ++c) {
      if (estimate.sources[e][c] != ProfileSource::extrapolated) kept.push_back(entry.measurements[c]);
    }
    entry.measurements = std::move(kept);
    profile.entries.push_back(std::move(entry));
  }
  return profile;
}

}  // namespace perseus::profiling
