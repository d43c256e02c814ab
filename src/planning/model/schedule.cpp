#include "planning/model/schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>

namespace perseus::model {
namespace {

Error violation(int rank, std::size_t position, const Action& action, const std::string& what) {
  return {ErrorCode::invalid_input,
          fmt::format("schedule: rank {}, action {}: {}: {}", rank, position, text_of(action), what)};
}

constexpr std::uint16_t bit(Instruction i) { return static_cast<std::uint16_t>(1U << static_cast<unsigned>(i)); }

bool once_per_iteration(Instruction i) { return i == Instruction::all_reduce || i == Instruction::optimizer_step; }

std::string names_in(unsigned bits) {
  std::vector<std::string_view> names;
  for (int i = 0; i < kNumInstructions; ++i) {
    if ((bits >> i & 1U) != 0) names.push_back(name_of(static_cast<Instruction>(i)));
  }
  return names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, " + "));
}

bool is_complete(unsigned computations) {
  using enum Instruction;
  constexpr unsigned forward_bit = bit(forward);
  return computations == (forward_bit | bit(backward)) ||
         computations == (forward_bit | bit(input_gradient) | bit(weight_gradient)) ||
         computations == (forward_bit | bit(recompute) | bit(pure_backward));
}

}  // namespace

std::string text_of(const Action& action) {
  std::string text = fmt::format("{} of stage {}", name_of(action.instruction), action.stage);
  if (action.microbatch >= 0) text += fmt::format(", microbatch {}", action.microbatch);
  return text;
}

Status Schedule::validate() const {
  const auto invalid = [](std::string message) { return Error{ErrorCode::invalid_input, "schedule: " + message}; };
  if (ranks.empty()) return invalid("no ranks; at least one is needed");
  if (num_stages < num_ranks()) {
    return invalid(fmt::format("{} stages on {} ranks; each rank needs a stage", num_stages, num_ranks()));
  }
  if (num_microbatches < 1) return invalid(fmt::format("{} microbatches; at least one is needed", num_microbatches));
  std::size_t num_actions = 0;
  for (const auto& actions : ranks) num_actions += actions.size();
  const std::size_t pairs = static_cast<std::size_t>(num_stages) * static_cast<std::size_t>(num_microbatches);
  // This also keeps the table below from being larger than its input.
  if (num_actions < 2 * pairs) {
    return invalid(fmt::format("{} stages x {} microbatches need at least {} actions, found {}", num_stages,
                               num_microbatches, 2 * pairs, num_actions));
  }

  std::vector<std::uint16_t> seen(pairs);
  std::vector<std::uint16_t> seen_once(num_stages);
  std::vector<int> rank_of_stage(num_stages, -1);
  for (int rank = 0; rank < num_ranks(); ++rank) {
    for (std::size_t i = 0; i < ranks[rank].size(); ++i) {
      const Action& action = ranks[rank][i];
      if (action.stage < 0 || action.stage >= num_stages) {
        return violation(rank, i, action, fmt::format("stage must be 0..{}", num_stages - 1));
      }
      const bool once = once_per_iteration(action.instruction);
      if (once ? action.microbatch != -1 : (action.microbatch < 0 || action.microbatch >= num_microbatches)) {
        return violation(
            rank, i, action,
            once ? fmt::format("runs once per iteration, so it has no microbatch, found {}", action.microbatch)
                 : fmt::format("microbatch must be 0..{}, found {}", num_microbatches - 1, action.microbatch));
      }
      int& home = rank_of_stage[action.stage];
      if (home == -1) home = rank;
      if (home != rank) {
        return violation(rank, i, action,
                         fmt::format("that stage also runs on rank {}; a stage lives on one rank", home));
      }
      const std::size_t pair = static_cast<std::size_t>(action.stage) * num_microbatches + action.microbatch;
      std::uint16_t& bits = once ? seen_once[action.stage] : seen[pair];
      if ((bits & bit(action.instruction)) != 0) return violation(rank, i, action, "given twice");
      bits = static_cast<std::uint16_t>(bits | bit(action.instruction));
    }
  }
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    const unsigned computations = seen[pair] & ~unsigned{bit(Instruction::load)};
    if (is_complete(computations)) continue;
    return invalid(
        fmt::format("stage {}, microbatch {} has {}; must have forward + backward, forward + input_gradient "
                    "+ weight_gradient, or forward + recompute + pure_backward",
                    pair / num_microbatches, pair % num_microbatches, names_in(computations)));
  }
  return Ok{};
}

int boundary_count(const Schedule& schedule) {
  const int last = schedule.num_ranks() - 1;
  std::vector<int> rank_of(schedule.num_stages);
  for (int rank = 0; rank <= last; ++rank) {
    for (const Action& action : schedule.ranks[rank]) rank_of[action.stage] = rank;
  }
  const auto around = std::ranges::adjacent_find(
      rank_of, [last](int a, int b) { return std::min(a, b) == 0 && std::max(a, b) == last; });
  return last > 1 && around != rank_of.end() ? last + 1 : last;
}

}  // namespace perseus::model
