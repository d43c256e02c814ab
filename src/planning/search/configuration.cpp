#include "planning/search/configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "planning/model/build_dag.h"
#include "planning/model/derived_instructions.h"
#include "planning/model/make_schedule.h"
#include "planning/model/schedule.h"
#include "planning/search/recomputation.h"
#include "planning/search/stage_count.h"

namespace perseus::search {
namespace {

Error invalid(std::string message) { return {ErrorCode::invalid_input, std::move(message)}; }

bool has(const model::Schedule& schedule, model::Instruction instruction) {
  return std::ranges::any_of(schedule.ranks, [&](const std::vector<model::Action>& actions) {
    return std::ranges::find(actions, instruction, &model::Action::instruction) != actions.end();
  });
}

/// The stages of each rank, those with the highest forward energy at the highest clock first.
std::vector<std::vector<int>> stages_of_ranks(const model::Schedule& schedule, const model::Profile& profile) {
  std::vector<std::vector<int>> stages(schedule.num_ranks());
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    std::vector<std::pair<double, int>> ordered;
    for (const model::Action& action : schedule.ranks[rank]) {
      if (action.instruction != model::Instruction::forward || action.microbatch != 0) continue;
      const model::ProfileEntry* forward = profile.find(action.stage, "forward");
      ordered.emplace_back(forward == nullptr ? 0 : -forward->measurements.front().energy.value(), action.stage);
    }
    std::ranges::sort(ordered);
    for (const auto& [energy, stage] : ordered) stages[rank].push_back(stage);
  }
  return stages;
}

/// A stage that does not recompute needs no recomputation ahead of its backward.
void recompute_only(const std::vector<bool>& recomputes, model::Schedule& schedule) {
  for (auto& actions : schedule.ranks) {
    std::erase_if(actions, [&](const model::Action& action) {
      return action.instruction == model::Instruction::recompute && !recomputes[action.stage];
    });
    for (model::Action& action : actions) {
      if (action.instruction == model::Instruction::pure_backward && !recomputes[action.stage]) {
        action.instruction = model::Instruction::backward;
      }
    }
  }
}

class Configurer {
 public:
  /// `recomputes`: per stage, in place of what the choice says; empty: the choice decides.
  Configurer(const SearchedJob& job, const ConfigurationChoice& choice, std::vector<bool> recomputes = {})
      : job_(job), choice_(choice), recomputes_(std::move(recomputes)) {}

  Result<Configuration> run() {
    const int num_ranks = job_.num_ranks > 0 ? job_.num_ranks : job_.profile.num_stages();
    const int num_stages = num_ranks * choice_.chunks;
    Result<model::Schedule> made =
        model::make_schedule(choice_.schedule, {num_ranks, job_.microbatches, choice_.chunks});
    if (!made) return made.error();
    schedule_ = *std::move(made);
    if (job_.profile.num_stages() != num_ranks) {
      Result<model::Profile> measured = with_stages(job_.profile, num_ranks);
      if (!measured) return measured.error();
    }
    Result<model::Profile> cut = with_stages(job_.profile, num_stages);
    if (!cut) return cut.error();
    profile_ = *std::move(cut);
    answer_.is_derived = job_.is_derived || num_stages != job_.profile.num_stages();
    answer_.assumptions = job_.assumptions;
    if (num_stages > job_.profile.num_stages()) {
      assume(fmt::format("each measured stage is divided into {} chunks that take equal shares of its time and energy",
                         num_stages / job_.profile.num_stages()));
    }
    if (num_stages < job_.profile.num_stages()) {
      assume(fmt::format("{} measured stages are merged into one: their times and energies add up",
                         job_.profile.num_stages() / num_stages));
    }
    if (Status known = find_memory(num_stages); !known) return known.error();
    if (Status chosen = choose_recomputation(); !chosen) return chosen.error();
    if (Status fits = check_memory(); !fits) return fits.error();
    if (Status derived = derive_profile(); !derived) return derived.error();
    Result<model::ComputationDag> dag = model::build_dag(profile_, schedule_, job_.costs);
    if (!dag) return dag.error();
    answer_.name = name_of(choice_) + job_.variant;
    answer_.choice = choice_;
    answer_.dag = *std::move(dag);
    if (Status drawn = draw_types(); !drawn) return drawn.error();
    answer_.microbatches = job_.microbatches;
    const std::vector<int> in_flight = microbatches_in_flight(schedule_);
    for (const std::vector<int>& stages : stages_of_ranks(schedule_, profile_)) {
      int most = 0;
      for (const int stage : stages) most = std::max(most, in_flight[stage]);
      answer_.in_flight.push_back(most);
    }
    if (job_.measured_with != MeasuredWith::unknown) answer_.recomputes = recomputes_;
    return std::move(answer_);
  }

 private:
  Status draw_types() {
    if (job_.draws.empty()) return Ok{};
    SearchedJob drawn = job_;
    drawn.draws.clear();
    for (const model::Profile& draw : job_.draws) {
      drawn.profile = draw;
      Result<Configuration> made = Configurer(drawn, choice_, recomputes_).run();
      if (!made) {
        return invalid(fmt::format("{}: not for every profile that the noise leaves possible: {}", name_of(choice_),
                                   made.error().message));
      }
      PERSEUS_CHECK(made->dag.types.size() == answer_.dag.types.size(), "a draw has the same computations");
      answer_.drawn.push_back(std::move(made->dag.types));
    }
    return Ok{};
  }

  void assume(std::string what) { answer_.assumptions.push_back(std::move(what)); }

  [[nodiscard]] bool fits(double gib) const { return gib <= *job_.memory_limit_gib * (1 + 1e-9); }

  Status find_memory(int num_stages) {
    const auto layers = job_.layer_memory ? with_stages(job_.layer_memory->layers, num_stages) : std::nullopt;
    if (layers) answer_.layers = *layers;
    if (num_stages == job_.profile.num_stages()) memory_ = job_.memory;
    if (job_.memory.empty() || !memory_.empty()) return Ok{};
    if (!layers) {
      memory_ = with_stages(job_.memory, num_stages);
      if (num_stages > job_.profile.num_stages()) assume("chunks of a stage take equal shares of its memory");
      return Ok{};
    }
    Result<std::vector<model::StageMemory>> memory = job_.layer_memory->of(*layers);
    if (!memory) return memory.error();
    memory_ = *std::move(memory);
    return Ok{};
  }

  Status choose_recomputation() {
    const bool measured = job_.measured_with == MeasuredWith::recomputation;
    const bool early = has(schedule_, model::Instruction::recompute);
    if (!recomputes_.empty()) {
      recompute_only(recomputes_, schedule_);
      return Ok{};
    }
    recomputes_.assign(schedule_.num_stages, measured);
    if (choice_.recomputing == Recomputing::none) recomputes_.assign(schedule_.num_stages, false);
    if (choice_.recomputing == Recomputing::all) recomputes_.assign(schedule_.num_stages, true);
    if (job_.measured_with == MeasuredWith::unknown && (early || choice_.recomputing != Recomputing::as_measured)) {
      return Error{ErrorCode::usage,
                   fmt::format("{}: it is unknown whether the profile's backward includes a recomputation; "
                               "set --measured-with",
                               name_of(choice_))};
    }
    if (choice_.recomputing == Recomputing::best) choose_best();
    if (early && std::ranges::find(recomputes_, true) == recomputes_.end()) {
      return invalid(fmt::format("{}: no stage recomputes, so there is nothing to recompute early", name_of(choice_)));
    }
    recompute_only(recomputes_, schedule_);
    return Ok{};
  }

  void choose_best() {
    recomputes_.assign(schedule_.num_stages, true);
    const std::vector<std::vector<int>> stages = stages_of_ranks(schedule_, profile_);
    if (!job_.memory_limit_gib) {
      assume("a stage stops recomputing only where it is alone on its rank and holds one microbatch at a time");
      const std::vector<int> in_flight = microbatches_in_flight(schedule_);
      for (const std::vector<int>& here : stages) {
        if (here.size() == 1 && in_flight[here.front()] <= 1) recomputes_[here.front()] = false;
      }
      return;
    }
    for (int turn = 0; turn < choice_.chunks; ++turn) {
      for (const std::vector<int>& here : stages) recomputes_[here[turn]] = false;
      const std::vector<double> peaks = peak_memory_gib(schedule_, memory_, recomputes_);
      for (std::size_t rank = 0; rank < stages.size(); ++rank) {
        if (!fits(peaks[rank])) recomputes_[stages[rank][turn]] = true;
      }
    }
  }

  Status check_memory() {
    if (memory_.empty()) return Ok{};
    answer_.memory_gib = peak_memory_gib(schedule_, memory_, recomputes_);
    if (job_.measured_with == MeasuredWith::unknown) assume("activations are kept, not recomputed (for memory)");
    if (!job_.memory_limit_gib) return Ok{};
    const auto most = std::ranges::max_element(answer_.memory_gib);
    if (fits(*most)) return Ok{};
    return invalid(fmt::format("{}: rank {} needs {:.4g} GiB; the limit is {:g} GiB", name_of(choice_),
                               most - answer_.memory_gib.begin(), *most, *job_.memory_limit_gib));
  }

  /// The profile with the instructions that this schedule runs on these stages.
  Status derive_profile() {
    bool lacks_halves = false;
    for (int stage = 0; stage < profile_.num_stages(); ++stage) {
      lacks_halves = lacks_halves || profile_.find(stage, "weight_gradient") == nullptr;
    }
    const bool splits = lacks_halves && has(schedule_, model::Instruction::weight_gradient);
    const bool known = job_.measured_with != MeasuredWith::unknown;
    const bool measured = job_.measured_with == MeasuredWith::recomputation;
    const bool as_measured = std::ranges::all_of(recomputes_, [&](bool recomputes) { return recomputes == measured; });
    const bool through_pure = known && (!as_measured || (splits && measured));
    answer_.is_derived = answer_.is_derived || splits || through_pure || has(schedule_, model::Instruction::recompute);
    if (through_pure && measured) {
      if (Status changed = take(without_recomputation(std::move(profile_))); !changed) return changed;
    }
    if (splits) {
      const double fraction = job_.input_gradient_fraction.value_or(kAssumedInputGradientFraction);
      if (Status changed = take(model::split_backward(std::move(profile_), fraction)); !changed) return changed;
      assume(
          fmt::format("the backward{} is split: input gradients take {:g} % of its time and energy at every clock, "
                      "weight gradients the rest ({})",
                      through_pure && measured ? " without its recomputation" : "", 100 * fraction,
                      job_.input_gradient_fraction ? "given" : "assumed: measure them, or set --split-backward"));
    }
    if (through_pure) {
      if (Status changed = take(with_recomputation(std::move(profile_), recomputes_)); !changed) return changed;
      if (!as_measured || has(schedule_, model::Instruction::recompute))
        assume("a recomputation costs what its forward costs");
    }
    return Ok{};
  }

  Status take(Result<model::Profile> changed) {
    if (!changed) return changed.error();
    profile_ = *std::move(changed);
    return Ok{};
  }

  const SearchedJob& job_;
  const ConfigurationChoice& choice_;
  Configuration answer_;
  model::Schedule schedule_;
  model::Profile profile_;
  std::vector<model::StageMemory> memory_;
  std::vector<bool> recomputes_;
};

}  // namespace

Status set_memory(LayerMemory memory, SearchedJob& job) {
  Result<std::vector<model::StageMemory>> stages = memory.of(memory.layers);
  if (!stages) return stages.error();
  job.memory = *std::move(stages);
  job.layer_memory = std::move(memory);
  return Ok{};
}

Result<Configuration> configure(const SearchedJob& job, const ConfigurationChoice& choice) {
  return Configurer(job, choice).run();
}

std::string name_of(const ConfigurationChoice& choice) {
  switch (choice.recomputing) {
    case Recomputing::as_measured:
      break;
    case Recomputing::none:
      return choice.schedule + "+recompute-none";
    case Recomputing::all:
      return choice.schedule + "+recompute-all";
    case Recomputing::best:
      return choice.schedule + "+recompute-best";
  }
  return choice.schedule;
}

}  // namespace perseus::search
