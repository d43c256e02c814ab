#include "server/jobs/job_state.h"

#include <algorithm>
#include <array>

namespace perseus::jobs {
namespace {

constexpr std::array<std::string_view, kNumJobStates> kStateNames{
    "none", "registered", "profiling", "characterizing", "deployed", "failed", "finished", "expired"};

struct Transition {
  JobState from;
  std::size_t kind;
  JobState to;
};

// Events that change the state. All others keep it, and need a live job.
constexpr std::array kTransitions{
    Transition{JobState::none, kind_of_type<JobRegistered>(), JobState::registered},
    Transition{JobState::registered, kind_of_type<ProfilingStarted>(), JobState::profiling},
    Transition{JobState::registered, kind_of_type<ProfilingFailed>(), JobState::failed},
    Transition{JobState::failed, kind_of_type<ProfilingStarted>(), JobState::profiling},
    Transition{JobState::failed, kind_of_type<ProfilingFailed>(), JobState::failed},
    Transition{JobState::profiling, kind_of_type<ProfilingFailed>(), JobState::failed},
    Transition{JobState::profiling, kind_of_type<SavingModeled>(), JobState::deployed},
    // A rank is now able to set its clock.
    Transition{JobState::deployed, kind_of_type<ProfilingStarted>(), JobState::profiling},
    Transition{JobState::deployed, kind_of_type<ProfilingFailed>(), JobState::failed},
    // A better profile may come at any time.
    Transition{JobState::registered, kind_of_type<CharacterizationStarted>(), JobState::characterizing},
    Transition{JobState::profiling, kind_of_type<CharacterizationStarted>(), JobState::characterizing},
    Transition{JobState::characterizing, kind_of_type<CharacterizationStarted>(), JobState::characterizing},
    Transition{JobState::deployed, kind_of_type<CharacterizationStarted>(), JobState::characterizing},
    Transition{JobState::failed, kind_of_type<CharacterizationStarted>(), JobState::characterizing},
    Transition{JobState::characterizing, kind_of_type<CharacterizationFailed>(), JobState::failed},
    Transition{JobState::failed, kind_of_type<CharacterizationFailed>(), JobState::failed},
    Transition{JobState::deployed, kind_of_type<CharacterizationFailed>(), JobState::failed},
    Transition{JobState::profiling, kind_of_type<CharacterizationFailed>(), JobState::failed},
    Transition{JobState::registered, kind_of_type<CharacterizationFailed>(), JobState::failed},
    Transition{JobState::characterizing, kind_of_type<PlanDeployed>(), JobState::deployed},
    Transition{JobState::deployed, kind_of_type<PlanDeployed>(), JobState::deployed},
    Transition{JobState::failed, kind_of_type<PlanDeployed>(), JobState::failed},
};

// Kinds that only some states allow, without changing the state.
constexpr std::array kOnlyIn{
    Transition{JobState::profiling, kind_of_type<WindowHandedOut>(), JobState::profiling},
    Transition{JobState::profiling, kind_of_type<ResultReported>(), JobState::profiling},
    Transition{JobState::characterizing, kind_of_type<Characterized>(), JobState::characterizing},
    Transition{JobState::failed, kind_of_type<Characterized>(), JobState::failed},
    // An older plan changed while a newer profile was characterized.
    Transition{JobState::deployed, kind_of_type<Characterized>(), JobState::deployed},
};

constexpr bool has_own_rows(std::size_t kind) {
  return std::ranges::any_of(kTransitions, [=](const Transition& t) { return t.kind == kind; }) ||
         std::ranges::any_of(kOnlyIn, [=](const Transition& t) { return t.kind == kind; });
}

constexpr bool is_live(JobState state) {
  return state != JobState::none && state != JobState::finished && state != JobState::expired;
}

}  // namespace

std::string_view name_of(JobState state) { return kStateNames[static_cast<std::size_t>(state)]; }

bool is_request(std::size_t kind) {
  constexpr std::array wanted{
      kind_of_type<JobRegistered>(),  kind_of_type<RankRegistered>(),     kind_of_type<ProfileKnown>(),
      kind_of_type<ResultReported>(), kind_of_type<StragglerNoticed>(),   kind_of_type<PolicySet>(),
      kind_of_type<PolicyCleared>(),  kind_of_type<StragglerWithdrawn>(), kind_of_type<JobSeen>(),
      kind_of_type<PlanDropped>(),    kind_of_type<JobRevived>(),         kind_of_type<TierSet>(),
      kind_of_type<JobHeard>(),
  };
  return std::ranges::find(wanted, kind) != wanted.end();
}

std::optional<JobState> next_state(JobState state, std::size_t kind) {
  if (kind == kind_of_type<JobFinished>()) return is_live(state) ? std::optional(JobState::finished) : std::nullopt;
  if (kind == kind_of_type<JobExpired>()) return is_live(state) ? std::optional(JobState::expired) : std::nullopt;
  // apply() restores the state from before the expiry.
  if (kind == kind_of_type<JobRevived>()) {
    return state == JobState::expired ? std::optional(JobState::registered) : std::nullopt;
  }
  if (!has_own_rows(kind)) return is_live(state) ? std::optional(state) : std::nullopt;
  for (const Transition& t : kTransitions) {
    if (t.from == state && t.kind == kind) return t.to;
  }
  for (const Transition& t : kOnlyIn) {
    if (t.from == state && t.kind == kind) return t.to;
  }
  return std::nullopt;
}

}  // namespace perseus::jobs
