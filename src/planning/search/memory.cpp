#include "planning/search/memory.h"

#include <algorithm>

#include "base/result.h"

namespace perseus::search {
namespace {

/// Calls visit(action, begins, ends): whether the action begins or ends the time in which a microbatch's activations
/// stay.
template <class Visit>
void for_each_holding(const std::vector<model::Action>& actions, const std::vector<bool>& is_split, Visit visit) {
  for (const model::Action& action : actions) {
    switch (action.instruction) {
      case model::Instruction::forward:
        visit(action, true, false);
        break;
      case model::Instruction::backward:
      case model::Instruction::pure_backward:
      case model::Instruction::weight_gradient:
        visit(action, false, true);
        break;
      case model::Instruction::input_gradient:
        visit(action, false, !is_split[action.stage]);
        break;
      case model::Instruction::recompute:
        visit(action, false, false);
        break;
      case model::Instruction::load:
      case model::Instruction::all_reduce:
      case model::Instruction::optimizer_step:
        break;
    }
  }
}

std::vector<bool> split_stages(const model::Schedule& schedule) {
  std::vector<bool> is_split(schedule.num_stages);
  for (const auto& actions : schedule.ranks) {
    for (const model::Action& action : actions) {
      if (action.instruction == model::Instruction::weight_gradient) is_split[action.stage] = true;
    }
  }
  return is_split;
}

/// Memory of a microbatch while an action of it runs, and after its end.
struct Holding {
  double during_gib = 0;
  double after_gib = 0;
};

Holding holding_of(model::Instruction instruction, const model::StageMemory& m, bool recomputes, bool ends) {
  if (!recomputes) return {m.activations_gib, ends ? 0 : m.activations_gib};
  const double recomputed = m.recompute_gib.value_or(m.activations_gib);
  const double all = m.checkpoint_gib + m.activations_gib;
  if (instruction == model::Instruction::forward) return {std::max(m.checkpoint_gib, recomputed), m.checkpoint_gib};
  if (instruction == model::Instruction::backward) return {m.checkpoint_gib + recomputed, 0};
  return {all, ends ? 0 : all};
}

}  // namespace

std::vector<model::StageMemory> with_stages(const std::vector<model::StageMemory>& memory, int num_stages) {
  const int known = static_cast<int>(memory.size());
  PERSEUS_CHECK(num_stages % known == 0 || known % num_stages == 0, "a multiple or a divisor");
  std::vector<model::StageMemory> result(num_stages);
  for (int i = 0; i < std::max(known, num_stages); ++i) {
    const model::StageMemory& from = memory[i * known / std::max(known, num_stages)];
    model::StageMemory& to = result[i * num_stages / std::max(known, num_stages)];
    const double share = num_stages > known ? static_cast<double>(known) / num_stages : 1;
    to.weights_gib += share * from.weights_gib;
    to.activations_gib += share * from.activations_gib;
    if (from.recompute_gib) {  // layer by layer: the checkpoint is the inputs of all layers
      to.checkpoint_gib += share * from.checkpoint_gib;
    } else if (to.checkpoint_gib == 0) {  // the stage's input: the same size for each chunk
      to.checkpoint_gib = from.checkpoint_gib;
    }
    if (from.recompute_gib) to.recompute_gib = std::max(to.recompute_gib.value_or(0), *from.recompute_gib);
  }
  return result;
}

std::vector<double> peak_memory_gib(const model::Schedule& schedule, const std::vector<model::StageMemory>& memory,
                                    const std::vector<bool>& recomputes) {
  const std::vector<bool> is_split = split_stages(schedule);
  std::vector<double> peaks;
  for (const auto& actions : schedule.ranks) {
    std::vector<bool> is_here(schedule.num_stages);
    double weights = 0;
    for (const model::Action& action : actions) {
      if (!is_here[action.stage]) weights += memory[action.stage].weights_gib;
      is_here[action.stage] = true;
    }
    std::vector<std::vector<double>> held(schedule.num_stages);  // per microbatch
    double now = 0, peak = 0;
    for_each_holding(actions, is_split, [&](const model::Action& action, bool, bool ends) {
      auto& of_stage = held[action.stage];
      of_stage.resize(schedule.num_microbatches);
      double& mine = of_stage[action.microbatch];
      const Holding holding = holding_of(action.instruction, memory[action.stage], recomputes[action.stage], ends);
      peak = std::max(peak, now - mine + std::max(mine, holding.during_gib));
      now += holding.after_gib - mine;
      mine = holding.after_gib;
    });
    peaks.push_back(weights + peak);
  }
  return peaks;
}

std::vector<int> microbatches_in_flight(const model::Schedule& schedule) {
  const std::vector<bool> is_split = split_stages(schedule);
  std::vector<int> most(schedule.num_stages), now(schedule.num_stages);
  for (const auto& actions : schedule.ranks) {
    for_each_holding(actions, is_split, [&](const model::Action& action, bool begins, bool ends) {
      int& count = now[action.stage];
      if (begins) most[action.stage] = std::max(most[action.stage], ++count);
      if (ends) --count;
    });
  }
  return most;
}

}  // namespace perseus::search
