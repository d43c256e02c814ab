// Operations on a job: its policies, a plan that a rank drops, its end, its removal.
//
// Input:   requests.
// Output:  `done` after the change is durable.
// Errors:  usage: the request; not_found: job, rank, policy; conflict: the job is over, or (for removal) still live.
// Cost:    O(1) besides the events.
// Threads: io thread.
#pragma once

#include <string>

#include "server/live/job_access.h"
#include "server/plans/stored_profiles.h"
#include "server/power/site_power.h"
#include "server/views/recent_events.h"

namespace perseus::service {

class JobOperations {
 public:
  JobOperations(live::JobCache& jobs, const Clock& clock, live::JobAccess& access, plans::StoredProfiles& profiles,
                views::RecentEvents& recent, power::SitePower& site)
      : jobs_(jobs), clock_(clock), access_(access), profiles_(profiles), recent_(recent), site_(site) {}

  void set_policy(jobs::SetPolicy request, work::Done<jobs::PolicyChanged> done);
  void set_tier(jobs::SetTier request, work::Done<Ok> done);
  void clear_policy(jobs::ClearPolicy request, work::Done<Ok> done);
  /// No effect for a plan that is no longer in force.
  void drop_plan(jobs::DropPlan request, work::Done<Ok> done);
  void see_shape(jobs::SeeShape request, work::Done<Ok> done);
  void finish(const std::string& job, work::Done<Ok> done, const std::string& by = {});
  /// Removes the job and its log permanently. conflict while the job is live.
  void remove(const std::string& job, work::Done<Ok> done, const std::string& by = {});

 private:
  live::JobCache& jobs_;
  const Clock& clock_;
  live::JobAccess& access_;
  plans::StoredProfiles& profiles_;
  views::RecentEvents& recent_;
  power::SitePower& site_;
};

}  // namespace perseus::service
