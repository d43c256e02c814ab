// Operations on a job: its policies, a plan that a rank drops, its end, its removal.
//
// Input:   requests.
// Output:  `done` after the change is durable.
// Errors:  usage: the request; not_found: job, rank, policy; conflict: the job is over, or (for removal) still live.
// Cost:    O(1) besides the events.
// Threads: io thread.
#pragma once

#include <string>

#include "server/service/job_access.h"
#include "server/service/stored_profiles.h"

namespace perseus::service {

class JobOperations {
 public:
  JobOperations(JobCache& jobs, const Clock& clock, JobAccess& access, StoredProfiles& profiles)
      : jobs_(jobs), clock_(clock), access_(access), profiles_(profiles) {}

  void set_policy(jobs::SetPolicy request, Done<jobs::PolicyChanged> done);
  void set_tier(jobs::SetTier request, Done<Ok> done);
  void clear_policy(jobs::ClearPolicy request, Done<Ok> done);
  /// No effect for a plan that is no longer in force.
  void drop_plan(jobs::DropPlan request, Done<Ok> done);
  void see_shape(jobs::SeeShape request, Done<Ok> done);
  void finish(const std::string& job, const std::string& by, Done<Ok> done);
  /// Removes the job and its log permanently.
  void remove(const std::string& job, Done<Ok> done);

 private:
  JobCache& jobs_;
  const Clock& clock_;
  JobAccess& access_;
  StoredProfiles& profiles_;
};

}  // namespace perseus::service
