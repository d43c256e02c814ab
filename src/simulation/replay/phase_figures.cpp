#include "simulation/replay/phase_figures.h"

#include <algorithm>
#include <cmath>

#include "base/median.h"

namespace perseus::replay {
namespace {

double time_of(const JobIteration& iteration) {
  return iteration.workers.front().end_s - iteration.workers.front().start_s;
}

}  // namespace

PhaseFigures figures_of(const std::vector<JobIteration>& iterations, int replicas) {
  PERSEUS_CHECK(!iterations.empty(), "a phase has iterations");
  PhaseFigures figures;
  figures.iterations = static_cast<int>(iterations.size());
  std::vector<double> times, energies;
  std::vector<std::vector<double>> own_times(replicas), own_energies(replicas);
  double reports = 0;
  for (const JobIteration& iteration : iterations) {
    std::vector<double> own_time(replicas), own_energy(replicas);
    const std::size_t ranks = iteration.workers.size() / replicas;
    double energy = 0;
    for (std::size_t w = 0; w < iteration.workers.size(); ++w) {
      const RankReport& report = iteration.workers[w];
      energy += report.energy_j;
      own_energy[w / ranks] += report.energy_j;
      own_time[w / ranks] = std::max(own_time[w / ranks], report.own_end_s - report.start_s);
      figures.late_ms += 1e3 * report.late_s;
      figures.lost_ms += 1e3 * report.lost_s;
      ++reports;
    }
    times.push_back(time_of(iteration));
    energies.push_back(energy);
    for (int r = 0; r < replicas; ++r) {
      own_times[r].push_back(own_time[r]);
      own_energies[r].push_back(own_energy[r]);
    }
  }
  figures.late_ms /= reports;
  figures.lost_ms /= reports;
  figures.time_s = median(times);
  figures.energy_j = median(energies);
  for (int r = 0; r < replicas; ++r) {
    figures.replica_time_s.push_back(median(own_times[r]));
    figures.replica_energy_j.push_back(median(own_energies[r]));
  }
  const auto [shortest, longest] = std::minmax_element(times.begin(), times.end());
  figures.shortest_s = *shortest;
  figures.longest_s = *longest;
  figures.typical = *std::min_element(iterations.begin(), iterations.end(), [&](const auto& a, const auto& b) {
    return std::abs(time_of(a) - figures.time_s) < std::abs(time_of(b) - figures.time_s);
  });
  return figures;
}

double saving_pct(double part, double whole) { return whole > 0 ? 100 * (1 - part / whole) : 0; }

double client_cpu_pct(const JobIteration& first, const JobIteration& last) {
  double cpu_s = 0;
  for (std::size_t w = 0; w < last.workers.size(); ++w) {
    cpu_s += last.workers[w].client.client_cpu_s - first.workers[w].client.client_cpu_s;
  }
  const double wall_s = last.workers.front().end_s - first.workers.front().end_s;
  return wall_s > 0 ? 100 * cpu_s / (wall_s * static_cast<double>(last.workers.size())) : 0;
}

}  // namespace perseus::replay
