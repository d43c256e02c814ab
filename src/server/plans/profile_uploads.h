// The profiles of a new job, and those uploaded to a running one.
//
// Input:   a registration, or an upload.
// Output:  the events and blobs of the completed inputs: profile, pipeline and limits in the planner's form.
// Errors:  usage/invalid_input: the profile or the pipelines; not_found: no such profile; conflict: the job is over.
// Cost:    reading, parsing and building DAGs: off the io thread.
// Threads: ProfileUploads: io thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/live/job_access.h"
#include "server/plans/planning_options.h"
#include "server/plans/stored_profiles.h"
#include "server/work/executor.h"

namespace perseus::plans {

/// The stored profiles that a new job names or that are known for its setup.
struct JobProfiles {
  struct Given {
    std::string csv;
    jobs::PipelineShape shape;
    std::string name;
    std::vector<int> pipelines;  ///< empty: all
    bool fixed_latency = false;  ///< as in ProfileKnown
  };
  std::vector<Given> given;
  /// A profile that an earlier job of the same setup has learned, for a trial.
  struct Learned {
    std::string key;
    jobs::LearnedProfile profile;
    Given given;
  };
  std::optional<Learned> learned;
  std::string by;  ///< who registers the job

  /// Reads the store: call it off the io thread, as complete().
  static Result<JobProfiles> read(store::Store& store, const jobs::RegisterJob& request, double switch_latency_s);
  [[nodiscard]] Result<live::Decision> complete(const jobs::InputLimits& limits) const;
};

class ProfileUploads {
 public:
  ProfileUploads(const PlanningOptions& options, live::JobCache& jobs, live::JobAccess& access,
                 work::Executor& executor)
      : options_(options), jobs_(jobs), access_(access), executor_(executor) {}

  /// A profile for a job without one, or a better one; for all its pipelines, or the given ones.
  void upload(const std::string& job, jobs::NamedProfile profile, std::vector<int> pipelines, work::Done<Ok> done,
              std::string by = {});

 private:
  const PlanningOptions& options_;
  live::JobCache& jobs_;
  live::JobAccess& access_;
  work::Executor& executor_;
};

}  // namespace perseus::plans
