// Writes down which version of its plan each rank of a job has, while a power budget applies.
//
// Problem: watts that a job gives up may be granted to another one only when its ranks have the plan that gives them
//          up, and every server, also a restarted one, must know that.
// Input:   the versions that ranks name in their requests.
// Output:  VersionHeld in the job's log: at once when all ranks have the newest version, otherwise after kGather_s.
//          Plans without a budget, and plans that are not durable, are not noted.
// Errors:  a write that fails is repeated when the ranks name their version again.
// Cost:    O(1) per request, O(ranks) per event.
// Threads: io thread.
// Source:  docs/decisions/0052.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "base/clock.h"
#include "server/live/job_cache.h"

namespace perseus::plans {

class HeldPlans {
 public:
  static constexpr double kGather_s = 0.5;

  HeldPlans(live::JobCache& jobs, const Clock& clock, work::Due& due)
      : jobs_(jobs), clock_(clock), alarm_(due, work::Due::Turn::held_plans, *this) {}

  /// A rank has named that version as the one that it has.
  void note(live::LiveJob& live, int rank, std::int64_t version);

 private:
  void write_all();
  void write(const std::string& id);

  live::JobCache& jobs_;
  const Clock& clock_;
  work::AlarmOf<&HeldPlans::write_all> alarm_;
  std::set<std::string> noted_;  ///< jobs
};

}  // namespace perseus::plans
