// A small training job with numbers that can be worked out by hand, and the inputs to emulate it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "planning/model/scenario.h"
#include "simulation/emulator/cluster.h"
#include "simulation/emulator/drawn_stragglers.h"

namespace perseus::testing {

/// One stage. Forward: 1 s and 100 J at 1000 MHz, 2 s and 120 J at 500 MHz. Backward: 1 s and 200 J, 2 s and 220 J.
/// Waiting draws 50 W, so effective energies fall from 50 to 20 J and from 150 to 120 J.
inline model::Profile one_stage_profile() {
  const auto entry = [](const char* instruction, double fast_j, double slow_j) {
    return model::ProfileEntry{0,
                               instruction,
                               {{Megahertz(1000), Seconds(1), Joules(fast_j), {}, {}, 1},
                                {Megahertz(500), Seconds(2), Joules(slow_j), {}, {}, 1}}};
  };
  return {{entry("forward", 100, 120), entry("backward", 200, 220)}, {1}};
}

inline model::Scenario small_scenario(int pipelines) {
  model::Scenario scenario;
  scenario.name = "small";
  scenario.kinds = {{"whole", "none.csv", "1f1b", 1, 1, pipelines, "small.toml:1: [[pipelines]]"}};
  scenario.blocking_power = Watts(50);
  scenario.iterations = 1;
  return scenario;
}

/// Kinds of a scenario, all with this profile.
inline std::vector<emulator::PipelineKind> kinds_of(const model::Scenario& scenario, const model::Profile& profile) {
  std::vector<emulator::PipelineKind> kinds;
  for (const model::ScenarioKind& kind : scenario.kinds)
    kinds.push_back(emulator::make_kind(profile, kind, scenario).value());
  return kinds;
}

inline model::Straggler straggler(model::StragglerCause cause, int pipeline, double slowdown, double at_s = 0,
                                  double for_s = 1e6) {
  model::Straggler made;
  made.hardship.cause = cause;
  made.hardship.slowdown = slowdown;
  made.hardship.where = "small.toml:9: [[straggler]]";
  made.pipeline = pipeline;
  made.at = Seconds(at_s);
  made.duration = Seconds(for_s);
  return made;
}

}  // namespace perseus::testing
