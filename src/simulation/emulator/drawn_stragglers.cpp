#include "simulation/emulator/drawn_stragglers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

namespace perseus::emulator {
namespace {

int num_stages(const model::ComputationDag& dag) {
  int last = -1;
  for (const model::ComputationType& type : dag.types) last = std::max(last, type.stage);
  return last + 1;
}

/// The DAG's accelerators that run a stage; 0 if they run nothing of it.
int accelerators_of_stage(const model::ComputationDag& dag, int stage) {
  for (const model::Computation& c : dag.computations)
    if (dag.types[c.type].stage == stage) return dag.accelerators[c.rank];
  return 0;
}

Status check(const model::Hardship& hardship, const std::vector<PipelineKind>& kinds, int kind_index) {
  const PipelineKind& kind = kinds[kind_index];
  const auto invalid = [&](const std::string& message) {
    return Error{ErrorCode::invalid_input, fmt::format("{}: {}", hardship.where, message)};
  };
  const int stages = num_stages(kind.dag);
  if (hardship.stage && *hardship.stage >= stages) {
    return invalid(
        fmt::format("stage: {}; allowed: 0..{}, the stages of kind '{}'", *hardship.stage, stages - 1, kind.name));
  }
  if (hardship.gpus) {
    for (int stage = 0; stage < stages; ++stage) {
      if (hardship.stage && *hardship.stage != stage) continue;
      const int there = accelerators_of_stage(kind.dag, stage) * kind.tensor_parallel;
      if (*hardship.gpus > there) {
        return invalid(fmt::format("gpus: {}; allowed: 1..{}, the GPUs of stage {} of kind '{}'", *hardship.gpus, there,
                                   stage, kind.name));
      }
    }
  }
  if (hardship.cause == model::StragglerCause::failure) {
    const PipelineKind& left = kinds[hardship.becomes];
    if (left.gpus() > kind.gpus()) {
      return invalid(fmt::format("becomes: '{}', whose pipelines have {} GPUs; allowed: at most the {} of kind '{}'",
                                 left.name, left.gpus(), kind.gpus(), kind.name));
    }
  }
  return Ok{};
}

/// Uniformly distributed numbers; the standard's distributions differ between libraries.
class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t distribution, std::uint64_t pipeline) {
    std::seed_seq sequence{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                           static_cast<std::uint32_t>(distribution), static_cast<std::uint32_t>(pipeline)};
    engine_.seed(sequence);
  }
  /// 0 <= number < 1
  double number() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  double between(double least, double most) { return least + (most - least) * number(); }
  int below(int count) { return std::min(count - 1, static_cast<int>(number() * count)); }
  Seconds exponential(Seconds mean) { return -std::log1p(-number()) * mean; }

 private:
  std::mt19937_64 engine_;
};

model::Straggler draw(const model::RandomStragglers& random, int pipeline, Seconds at, int stages, Draws& draws) {
  model::Straggler straggler{random.hardship, pipeline, at, draws.exponential(random.mean_duration)};
  straggler.hardship.slowdown = std::round(100 * draws.between(random.least_slowdown, random.most_slowdown)) / 100;
  const int stage = draws.below(stages);
  if (random.one_stage) straggler.hardship.stage = stage;
  return straggler;
}

}  // namespace

int kind_of_pipeline(const std::vector<PipelineKind>& kinds, int pipeline) {
  int kind = 0;
  while (pipeline >= kinds[kind].pipelines) pipeline -= kinds[kind++].pipelines;
  return kind;
}

Status check_stragglers(const model::Scenario& scenario, const std::vector<PipelineKind>& kinds) {
  for (const model::Straggler& straggler : scenario.stragglers) {
    Status checked = check(straggler.hardship, kinds, kind_of_pipeline(kinds, straggler.pipeline));
    if (!checked) return checked;
  }
  for (const model::RandomStragglers& random : scenario.random) {
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      if (kinds[kind].pipelines == 0) continue;
      Status checked = check(random.hardship, kinds, static_cast<int>(kind));
      if (!checked) return checked;
    }
  }
  return Ok{};
}

Result<std::vector<model::Straggler>> draw_stragglers(const model::Scenario& scenario,
                                                      const std::vector<PipelineKind>& kinds) {
  std::vector<model::Straggler> all = scenario.stragglers;
  for (std::size_t d = 0; d < scenario.random.size(); ++d) {
    const model::RandomStragglers& random = scenario.random[d];
    for (int pipeline = 0; pipeline < scenario.num_pipelines(); ++pipeline) {
      Draws draws(scenario.seed, d, static_cast<std::uint64_t>(pipeline));
      const int stages = num_stages(kinds[kind_of_pipeline(kinds, pipeline)].dag);
      Seconds at = draws.exponential(random.mean_between);
      while (at < *scenario.duration) {
        all.push_back(draw(random, pipeline, at, stages, draws));
        if (all.size() > kMaxStragglers) {
          return Error{ErrorCode::invalid_input,
                       fmt::format("{}: more than {} stragglers; allowed: mean_between_s that makes fewer",
                                   random.hardship.where, kMaxStragglers)};
        }
        at += all.back().duration + draws.exponential(random.mean_between);
      }
    }
  }
  std::ranges::stable_sort(all, {}, [](const model::Straggler& s) { return std::pair(s.at, s.pipeline); });
  return all;
}

Condition condition_of(const std::vector<const model::Hardship*>& hardships, const PipelineKind& kind) {
  Condition condition;
  for (const model::Hardship* h : hardships) {
    if (h->cause == model::StragglerCause::failure || h->slowdown <= 1) continue;
    if (h->cause == model::StragglerCause::storage) {
      condition.stall = std::max(condition.stall, (h->slowdown - 1) * kind.bound.t_min());
      continue;
    }
    const int stages = num_stages(kind.dag);
    for (int stage = h->stage.value_or(0); stage < (h->stage ? std::min(*h->stage + 1, stages) : stages); ++stage) {
      const int there = accelerators_of_stage(kind.dag, stage) * kind.tensor_parallel;
      if (there == 0) continue;
      const double share = h->gpus ? std::min(1.0, static_cast<double>(*h->gpus) / there) : 1;
      condition.add({stage, h->slowdown, share});
    }
  }
  return condition;
}

}  // namespace perseus::emulator
