// A training job that runs the requested clocks and reports noisy measurements.
//
// The truth is a profile; every occurrence takes its time and energy there, each multiplied by an independent 1 +
// noise * normal. The iteration takes as long as the longest path through these times, and waits at blocking power.
// The meter of whole iterations may be noisy too. In each iteration, every rank's clock has its own offset.
#pragma once

#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "planning/model/build_dag.h"
#include "planning/model/computation_dag.h"
#include "server/profiling/online_profiler.h"

namespace perseus::testing {

struct SimulationOptions {
  double noise = 0.01;     ///< of every time and energy of a computation
  double meter_noise = 0;  ///< of an iteration's energy
  bool energy_breakdown = true;
  Watts blocking_power{83.64};
  std::vector<double> replica_slowness = {1};  ///< of every rank: factor on the times of each replica
  model::TransferLatency transfer_latency = {};
  bool blocking_transfers = false;
  double jitter_s = 0;              ///< of begins, exponentially distributed
  bool short_computations = false;  ///< shorter than a clock change: at a lower clock they have no time and no energy
};

class SimulatedJob {
 public:
  SimulatedJob(const model::Profile& truth, model::Schedule schedule, SimulationOptions options, std::uint64_t seed)
      : schedule_(std::move(schedule)),
        options_(std::move(options)),
        dag_(model::build_dag(truth, schedule_,
                              {options_.blocking_power, options_.transfer_latency, options_.blocking_transfers})
                 .value()),
        engine_(seed) {}

  [[nodiscard]] profiling::ProfilingJob job(bool tell_blocking_power = true) const {
    profiling::ProfilingJob job;
    job.schedule = schedule_;
    job.clocks.resize(schedule_.num_stages);
    for (const model::ComputationType& type : dag_.types) {
      std::vector<Megahertz>& clocks = job.clocks[type.stage];
      if (!clocks.empty()) continue;
      for (const model::Measurement& m : type.options) clocks.push_back(m.clock);
    }
    job.replicas.assign(schedule_.ranks.size(), static_cast<int>(options_.replica_slowness.size()));
    if (tell_blocking_power) job.blocking_power = options_.blocking_power;
    return job;
  }
  [[nodiscard]] const model::ComputationDag& dag() const { return dag_; }
  [[nodiscard]] const SimulationOptions& options() const { return options_; }

  /// One result per rank and replica, ranks first.
  std::vector<profiling::RankResult> run(const profiling::ProfilingWindow& window) {
    std::vector<profiling::RankResult> results;
    for (std::size_t replica = 0; replica < options_.replica_slowness.size(); ++replica) {
      const std::size_t first = results.size();
      for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
        results.push_back({rank, static_cast<int>(replica), window.number, {}, {}, {}, {}, {}});
      }
      for (int i = 0; i < window.iterations; ++i) {
        run_iteration(window, options_.replica_slowness[replica], results, first);
      }
    }
    return results;
  }

 private:
  double noise(double size) {
    // Box-Muller, for the same numbers with every standard library.
    const double radius = std::sqrt(-2 * std::log(1 - static_cast<double>(engine_() >> 11) * 0x1p-53));
    return 1 + size * radius * std::cos(6.283185307179586 * static_cast<double>(engine_() >> 11) * 0x1p-53);
  }

  void run_iteration(const profiling::ProfilingWindow& window, double slowness,
                     std::vector<profiling::RankResult>& results, std::size_t first) {
    std::vector<double> time(dag_.computations.size()), energy(dag_.computations.size());
    for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
      for (std::size_t a = 0; a < dag_.rank_order[rank].size(); ++a) {
        const int c = dag_.rank_order[rank][a];
        for (const model::Measurement& m : dag_.type_of(c).options) {
          if (m.clock != window.clocks[rank][a]) continue;
          time[c] = m.time.value() * slowness * noise(options_.noise);
          energy[c] = m.energy.value() * noise(options_.noise);
        }
      }
    }
    std::vector<double> start(dag_.computations.size());
    std::vector<std::vector<model::Dependency>> after(dag_.computations.size());
    for (const model::Dependency& d : dag_.dependencies) after[d.before].push_back(d);
    double end = 0;
    for (std::size_t c = 0; c < start.size(); ++c) {
      if (options_.jitter_s > 0) start[c] += options_.jitter_s * jitter_(clock_engine_);
      const double finish = start[c] + time[c];
      end = std::max(end, finish);
      for (const model::Dependency& d : after[c]) start[d.after] = std::max(start[d.after], finish + d.latency.value());
    }
    for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
      profiling::RankResult& result = results[first + static_cast<std::size_t>(rank)];
      const std::size_t iteration = result.iteration_time.size();
      double busy_s = 0, busy_j = 0;
      const double offset_s = offset_(clock_engine_);
      for (std::size_t a = 0; a < dag_.rank_order[rank].size(); ++a) {
        const int c = dag_.rank_order[rank][a];
        const bool unknown =
            options_.short_computations && window.clocks[rank][a] < dag_.type_of(c).options.front().clock;
        const std::string& name = dag_.type_of(c).instruction;
        busy_s += time[c];
        busy_j += energy[c];
        result.time_s[name].resize(iteration + 1);
        result.time_s[name].back().push_back(unknown ? 0 : time[c]);
        result.energy_j[name].resize(iteration + 1);
        if (options_.energy_breakdown) result.energy_j[name].back().push_back(unknown ? 0 : energy[c]);
        result.begin_s[name].resize(iteration + 1);
        result.begin_s[name].back().push_back(start[c] + offset_s);
        result.end_s[name].resize(iteration + 1);
        result.end_s[name].back().push_back(start[c] + time[c] + offset_s);
      }
      result.iteration_time.emplace_back(end);
      result.iteration_energy.emplace_back((busy_j + options_.blocking_power.value() * (end - busy_s)) *
                                           noise(options_.meter_noise));
    }
  }

  model::Schedule schedule_;
  SimulationOptions options_;
  model::ComputationDag dag_;
  std::mt19937_64 engine_;
  std::mt19937_64 clock_engine_{1};
  std::uniform_real_distribution<double> offset_{-100, 100};
  std::exponential_distribution<double> jitter_{1};
};

}  // namespace perseus::testing
