// A job in memory: the fold of its log, and the data that only this process has.
//
// Input:   JobCache folds events into it; the parts of the service keep their own data of the job in it.
// Output:  the job as it is, as ranks see it, and as clients may see it.
// Errors:  none.
// Cost:    O(1) per call.
// Threads: io thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/jobs/job.h"
#include "server/live/job_outbox.h"
#include "server/live/loaded_frontiers.h"
#include "server/live/rank_calls.h"
#include "server/live/rank_clocks.h"
#include "server/live/rank_reports.h"
#include "server/live/rank_windows.h"
#include "server/live/replan_state.h"
#include "server/live/schedule_cache.h"
#include "server/live/shown_job.h"
#include "server/policies/straggler_detector.h"
#include "server/profiles/job_profiling.h"

namespace perseus::live {

/// After a failure of the store, what failed is repeated.
inline constexpr double kRetryAfter_s = 1;

/// The error for a job whose log this version cannot fold. The known part is shown, and the job is not changed.
Error later_version(const std::string& job);

/// The versions that ranks have named and the log does not have yet, see HeldPlans.
struct NotedVersions {
  struct Note {
    std::int64_t version = 0, epoch = 0;  ///< of the plan; of the rank's process
  };
  std::map<int, Note> of_rank;
  std::int64_t newest = 0;
  int of_newest = 0;  ///< ranks that named it
};

/// A job with the data that only this process has, by topic; docs/server.md, "A job in memory".
struct LiveJob {
  jobs::Job job;
  std::int64_t committed = 0;     ///< events of `job` that are durable
  ShownJob shown;                 ///< `job` as ranks and clients see it
  double last_seen_s = 0;         ///< time of the last request
  std::optional<double> retry_s;  ///< when to repeat an operation that failed in the store
  std::optional<double> wake_s;   ///< as in the index
  bool settled = false;           ///< nothing has changed since the plan was last compared with the desired one
  int subscribers = 0;
  LoadedFrontiers frontiers;  ///< of those that its plan needs
  ScheduleCache schedules;    ///< of the plan in force
  RankCalls calls;
  RankReports reports;
  RankClocks clocks;
  std::optional<policies::StragglerDetector> detector;  ///< created at the first report
  std::shared_ptr<profiles::JobProfiling> profiling;    ///< of a profiled job; kept for the list of rejected values
  RankWindows windows;
  ReplanState replan;
  bool completes_shape = false;  ///< see ShapeInputs
  NotedVersions noted;
  int times_read = 0;  ///< from the store: what memory had may have been undone, and its sequence be used again

  [[nodiscard]] bool has_rank(int rank) const {
    return rank >= 0 && rank < static_cast<int>(job.ranks.size()) && job.ranks[rank];
  }
  /// This server knows the rank and the plan of that version.
  [[nodiscard]] bool knows(int rank, std::int64_t version) const {
    return has_rank(rank) && (version <= shown.committed_plan || is_provisional(version));
  }
  /// As far as this server knows, no iteration has followed a plan.
  [[nodiscard]] bool no_plan_followed() const {
    return !replan.plan_handed_out && job.total.iterations == 0 && job.counted_to < 0;
  }
  /// Everything in memory is durable.
  [[nodiscard]] bool is_durable() const { return !stale_ && outbox_.all_durable(); }
  /// True if the blob still waits to be written: `job` is ahead of the store and may name such blobs.
  [[nodiscard]] bool is_pending(std::string_view blob) const { return outbox_.is_pending(blob); }

 private:
  friend class JobCache;
  /// The job's ranks have restarted.
  void forget_iterations() {
    reports.forget_iterations();
    schedules.clear();
  }

  JobOutbox outbox_;
  std::optional<RankReports> before_restart_;  ///< `reports`, back if the store refuses the job's restart
  bool stale_ = false;                         ///< memory may differ from the store
};

/// Gets the job, or the error.
using FoundJob = std::function<void(Result<LiveJob*>)>;

/// While it exists, `live.job` and `*shown` are exchanged; null: nothing happens. See ShownJob.
class AsShown {
 public:
  AsShown(LiveJob& live, jobs::Job* shown) : live_(live), shown_(shown) { exchange(); }
  AsShown(const AsShown&) = delete;
  AsShown& operator=(const AsShown&) = delete;
  ~AsShown() { exchange(); }

 private:
  void exchange() {
    if (shown_ != nullptr) std::swap(live_.job, *shown_);
  }
  LiveJob& live_;
  jobs::Job* shown_;
};

}  // namespace perseus::live
