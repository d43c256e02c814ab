#include "simulation/emulator/scaling.h"

#include <fmt/format.h>

#include <map>

namespace perseus::emulator {
namespace {

constexpr const char* kAllMax = "all-max";

/// Kind and plans for one number of microbatches: the part that does not depend on the number of pipelines.
struct Planned {
  std::vector<PipelineKind> kinds;
  std::vector<MethodPlans> methods;  ///< all-max first
};

Result<Planned> plan(const model::Scenario& scenario, const model::Profile& profile, int microbatches) {
  model::ScenarioKind shape = scenario.kinds[0];
  shape.microbatches = microbatches;
  Result<PipelineKind> kind = make_kind(profile, shape, scenario);
  if (!kind) return kind.error();
  Planned planned{{*std::move(kind)}, {}};
  std::vector<std::string> names{kAllMax};
  for (const std::string& name : scenario.methods)
    if (name != kAllMax) names.push_back(name);
  for (const std::string& name : names) {
    Result<MethodPlans> plans = plan_method(name, planned.kinds, scenario);
    if (!plans) return plans.error();
    planned.methods.push_back(*std::move(plans));
  }
  return planned;
}

/// Energy of an iteration of a pipeline without stragglers.
std::optional<Joules> of_healthy(const SteadyState& state) {
  for (std::size_t g = 0; g < state.groups.size(); ++g)
    if (state.groups[g].condition.healthy()) return state.iteration.of_one[g].total();
  return std::nullopt;
}

struct Size {
  model::Scaling scaling = model::Scaling::strong;
  int gpus = 0;
  int pipelines = 0;
  int microbatches = 0;
};

Result<std::vector<Size>> sizes_of(const model::Scenario& scenario, int gpus_per_pipeline) {
  const model::ScenarioKind& kind = scenario.kinds[0];
  const auto invalid = [&](const std::string& message) {
    return Error{ErrorCode::invalid_input, fmt::format("{}: [sweep]: gpus: {}", scenario.name, message)};
  };
  const int global_batch = kind.microbatches * kind.pipelines;
  std::vector<Size> sizes;
  for (const model::Scaling scaling : scenario.sweep->scaling) {
    for (const int gpus : scenario.sweep->gpus) {
      if (gpus % gpus_per_pipeline != 0) {
        return invalid(fmt::format("{}; allowed: multiples of {}, the GPUs of a pipeline", gpus, gpus_per_pipeline));
      }
      Size size{scaling, gpus, gpus / gpus_per_pipeline, kind.microbatches};
      if (scaling == model::Scaling::strong) {
        if (global_batch % size.pipelines != 0) {
          return invalid(
              fmt::format("{}, which are {} pipelines; allowed: numbers of pipelines that divide the global "
                          "batch of {} microbatches",
                          gpus, size.pipelines, global_batch));
        }
        size.microbatches = global_batch / size.pipelines;
      }
      sizes.push_back(size);
    }
  }
  return sizes;
}

void emulate_size(const Size& size, Planned& planned, const model::Scenario& scenario, std::vector<ScalingRow>& rows) {
  planned.kinds[0].pipelines = size.pipelines;
  std::vector<Emulator> emulators;
  for (const MethodPlans& method : planned.methods) emulators.emplace_back(scenario, planned.kinds, method);
  for (const double slowdown : scenario.sweep->slowdowns) {
    std::vector<model::Straggler> stragglers;
    if (slowdown > 1) {
      model::Straggler straggler;
      straggler.hardship.slowdown = slowdown;
      stragglers.push_back(straggler);
    }
    Joules reference;
    std::optional<Joules> healthy_reference;
    for (std::size_t m = 0; m < emulators.size(); ++m) {
      const SteadyState state = emulators[m].steady_state(stragglers, Response::look_up);
      const Joules fastest = emulators[m].steady_state(stragglers, Response::default_plans).iteration.energy.total();
      const Joules energy = state.iteration.energy.total();
      const std::optional<Joules> healthy = of_healthy(state);
      if (m == 0) {
        reference = energy;
        healthy_reference = healthy;
      }
      ScalingRow row{size.scaling,    size.gpus,
                     size.pipelines,  size.microbatches,
                     slowdown,        planned.methods[m].name,
                     state.iteration, savings_of(reference, fastest, energy),
                     std::nullopt};
      if (healthy) row.non_straggler_pct = 100 * ((*healthy_reference - *healthy) / *healthy_reference);
      rows.push_back(std::move(row));
    }
  }
}

}  // namespace

Result<std::vector<ScalingRow>> emulate_scaling(const model::Scenario& scenario, const model::Profile& profile,
                                                const std::function<void(double)>& progress) {
  model::Scenario steady = scenario;
  steady.delivery.notice_delay = steady.delivery.deploy = Seconds(0);
  int accelerators = 0;
  for (const int count : profile.accelerators) accelerators += count;
  const Result<std::vector<Size>> sizes =
      sizes_of(scenario, accelerators / scenario.kinds[0].chunks * scenario.tensor_parallel);
  if (!sizes) return sizes.error();

  std::map<int, Planned> planned;
  std::vector<ScalingRow> rows;
  for (std::size_t i = 0; i < sizes->size(); ++i) {
    const Size& size = (*sizes)[i];
    if (!planned.contains(size.microbatches)) {
      Result<Planned> made = plan(steady, profile, size.microbatches);
      if (!made) return made.error();
      planned.emplace(size.microbatches, *std::move(made));
    }
    emulate_size(size, planned.at(size.microbatches), steady, rows);
    if (progress) progress(static_cast<double>(i + 1) / static_cast<double>(sizes->size()));
  }
  return rows;
}

}  // namespace perseus::emulator
