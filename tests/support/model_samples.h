// Small profiles and DAGs that several tests use.
#pragma once

#include <string>
#include <vector>

#include "planning/model/computation_dag.h"

namespace perseus::testing {

/// Every stage has these instructions, each with one clock; instruction i takes times[i] seconds and 10 J per second.
inline model::Profile uniform_profile(int num_stages, const std::vector<std::pair<std::string, double>>& times) {
  model::Profile profile;
  profile.accelerators.assign(num_stages, 1);
  for (int stage = 0; stage < num_stages; ++stage) {
    for (const auto& [instruction, time] : times) {
      profile.entries.push_back({stage, instruction, {{Megahertz(1000), Seconds(time), Joules(10 * time), {}, {}, 1}}});
    }
  }
  return profile;
}

/// Forward, backward, and the two halves of backward: all that a schedule may need.
inline model::Profile profile_for_any_schedule(int num_stages, double forward = 1, double input = 1,
                                               double weight = 1) {
  return uniform_profile(
      num_stages,
      {{"forward", forward}, {"backward", input + weight}, {"input_gradient", input}, {"weight_gradient", weight}});
}

/// Two stages, two clocks each, all numbers different.
inline model::Profile two_clock_profile(int num_stages = 2) {
  model::Profile profile;
  profile.accelerators.assign(num_stages, 1);
  for (int stage = 0; stage < num_stages; ++stage) {
    const double base = 0.1 * (stage + 1);
    profile.entries.push_back({stage,
                               "forward",
                               {{Megahertz(1410), Seconds(base), Joules(30), Seconds(0.001), Joules(0.2), 3},
                                {Megahertz(1200), Seconds(base * 1.1), Joules(25), {}, {}, 1}}});
    profile.entries.push_back({stage,
                               "backward",
                               {{Megahertz(1410), Seconds(2 * base), Joules(61), {}, {}, 1},
                                {Megahertz(1215), Seconds(2.2 * base), Joules(50.5), {}, {}, 1},
                                {Megahertz(1005), Seconds(2.6 * base), Joules(45), {}, {}, 1}}});
  }
  return profile;
}

/// Iteration time with everything at option 0: the DAG's longest path.
inline double makespan(const model::ComputationDag& dag) {
  std::vector<double> start(dag.computations.size());
  double end = 0;
  std::vector<std::vector<const model::Dependency*>> incoming(dag.computations.size());
  for (const model::Dependency& edge : dag.dependencies) incoming[edge.after].push_back(&edge);
  const auto time = [&](int i) { return dag.type_of(i).options[0].time.value(); };
  for (int i = 0; i < static_cast<int>(dag.computations.size()); ++i) {
    for (const model::Dependency* edge : incoming[i]) {
      start[i] = std::max(start[i], start[edge->before] + time(edge->before) + edge->latency.value());
    }
    end = std::max(end, start[i] + time(i));
  }
  return end;
}

}  // namespace perseus::testing
