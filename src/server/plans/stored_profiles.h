// Named profiles, and profiles that earlier jobs have learned, in the store.
//
// Input:   profiles to keep, names, outcomes of trials.
// Output:  `done` once the store has answered; a named profile's frontier is planned in advance.
// Errors:  usage/invalid_input: the name or the profile; not_found: no such profile; unavailable: the store.
// Cost:    parsing and reading run on the executor.
// Threads: io thread; read_named_profile() and read_learned_input() off it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/jobs/pipeline_input.h"
#include "server/jobs/requests.h"
#include "server/live/learned_profile.h"
#include "server/plans/characterizations.h"
#include "server/plans/planning_options.h"

namespace perseus::plans {

class StoredProfiles {
 public:
  StoredProfiles(const PlanningOptions& options, work::StoreAccess& store, work::Executor& executor,
                 Characterizations& characterizations)
      : options_(options), store_(store), executor_(executor), characterizations_(characterizations) {}

  void put(const jobs::NamedProfile& profile, work::Done<jobs::StoredProfile> done);
  void get(const std::string& name, work::Done<jobs::NamedProfile> done);
  void names(work::Done<std::vector<std::string>> done);
  void remove(const std::string& name, work::Done<Ok> done);

  /// Of all teams.
  void learned(work::Done<std::vector<jobs::LearnedProfile>> done);
  void forget_learned(const std::string& id, work::Done<Ok> done);
  /// Deletes the learned profile: later runs of this job's setup measure again.
  void forget_learned_by(const jobs::Job& job, work::Done<Ok> done);
  /// Stores the outcome of the job's trial with the learned profile.
  void note_trial(const std::string& job, const jobs::ProfileOnTrial& candidate, const jobs::TrialEnded& ended);

 private:
  struct Completed {
    profiles::KnownInput known;
    jobs::StoredProfile stored;
  };
  static Result<Completed> complete(const jobs::NamedProfile& profile, const jobs::InputLimits& limits);
  void save(const jobs::NamedProfile& profile, const Completed& completed, const work::Done<jobs::StoredProfile>& done);
  /// Later jobs that name the profile will find its frontier.
  void plan_in_advance(const std::string& name, const std::string& input);

  const PlanningOptions& options_;
  work::StoreAccess& store_;
  work::Executor& executor_;
  Characterizations& characterizations_;
};

jobs::InputLimits input_limits(const PlanningOptions& options, int ranks);

/// The next functions read the store: call them off the io thread.
Result<jobs::NamedProfile> read_named_profile(store::Store& store, const std::string& name);

struct LearnedInput {
  jobs::LearnedProfile profile;
  jobs::PipelineInput input;
};
/// The profile that an earlier run of the same training has learned and that no later run has contradicted.
Result<std::optional<LearnedInput>> read_learned_input(store::Store& store, const std::string& key);

}  // namespace perseus::plans
