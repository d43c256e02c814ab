// A job in memory: the fold of its log, and the data that only this process has.
//
// Input:   JobCache folds events into it; the parts of the service keep their own data of the job in it.
// Output:  the job as it is, as ranks see it, and as clients may see it.
// Errors:  none.
// Cost:    O(1) per call.
// Threads: io thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/units.h"
#include "server/jobs/job.h"
#include "server/live/job_outbox.h"
#include "server/live/rank_calls.h"
#include "server/live/rank_reports.h"
#include "server/live/shown_job.h"
#include "server/policies/deployment.h"
#include "server/policies/straggler_detector.h"
#include "server/profiles/job_profiling.h"

namespace perseus::live {

/// After a failure of the store, what failed is repeated.
inline constexpr double kRetryAfter_s = 1;

/// The error for a job whose log this version cannot fold. The known part is shown, and the job is not changed.
Error later_version(const std::string& job);

/// The profiling windows that each rank was handed, and ran, as far as this server knows: clients that do not name
/// windows send the same request for every one.
class RankWindows {
 public:
  void hand_out(int rank, int window) { windows_of_[rank].handed = window; }
  void ran(int rank, int window) { windows_of_[rank].run = window; }
  /// The last window that this server handed to the rank; nothing: none.
  [[nodiscard]] std::optional<int> handed(int rank) const;
  /// It is the last one that the rank reported here.
  [[nodiscard]] bool has_run(int rank, int window) const;
  /// Profiling begins anew.
  void clear() { windows_of_.clear(); }

 private:
  struct Last {
    std::optional<int> handed, run;
  };
  std::unordered_map<int, Last> windows_of_;
};

/// The planning of a job with the switch latency that its ranks measured: what LatencyReplans keeps of it.
class ReplanState {
 public:
  bool under_way = false;        ///< an input is being completed with the measured latency
  bool plan_handed_out = false;  ///< this server has sent the job's plan to some rank
  double measure_again_s = 0;    ///< not earlier: measuring the profile again could not begin
  bool plan_held_back = false;   ///< a rank requested it: see LatencyReplans::first_plan_waits()

  /// The input cannot be completed with that latency.
  void failed(const std::string& input, Seconds latency) { failed_.insert_or_assign(input, latency); }
  /// The last failure of the input was with that latency.
  [[nodiscard]] bool has_failed(const std::string& input, Seconds latency) const {
    const auto found = failed_.find(input);
    return found != failed_.end() && found->second == latency;
  }

 private:
  std::map<std::string, Seconds> failed_;  ///< by input
};

/// The frontiers of a job that are in memory, and those that have been requested for it; of an input, the full one.
class LoadedFrontiers {
 public:
  using Frontier = std::shared_ptr<const jobs::CharacterizedPipeline>;
  [[nodiscard]] const policies::Frontiers& all() const { return loaded_; }
  /// Null: it is not in memory.
  [[nodiscard]] std::shared_ptr<const jobs::CharacterizedPipeline> find(std::string_view key) const;
  void add(std::shared_ptr<const jobs::CharacterizedPipeline> frontier);
  void drop(const std::string& key) { loaded_.erase(key); }

  /// False: it is in memory or has been requested.
  bool request(const std::string& key);
  /// The request was answered.
  void answered(const std::string& key) { requested_.erase(key); }
  /// Withdraws all requests but those, and returns the withdrawn ones.
  std::vector<std::string> withdraw_except(const std::set<std::string>& needed);
  [[nodiscard]] const std::set<std::string>& requested() const { return requested_; }

 private:
  policies::Frontiers loaded_;
  std::set<std::string> requested_;
};

/// The schedules of a job's stages, each made once per plan version and shared by the ranks of the stage.
class ScheduleCache {
 public:
  /// Pipeline's choice, stage rank, clock set and instruction set.
  using Key = std::array<int, 4>;
  using Schedule = std::shared_ptr<const jobs::StageSchedule>;
  /// Drops the schedules of another version.
  Schedule& at(std::int64_t version, const Key& key);
  void clear() { schedules_.clear(); }

  /// The computations where there is no frontier, from the job's input.
  struct MaxClockShape {
    enum class Reading : unsigned char { no, under_way, failed };
    std::optional<jobs::PipelineShape> shape;
    Reading reading = Reading::no;
  };
  MaxClockShape max_clock;

 private:
  std::map<Key, Schedule> schedules_;
  std::int64_t version_ = 0;
};

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
  /// The ranks run at their highest clock until a first plan for their switch latency is there.
  [[nodiscard]] bool first_plan_held_back() const { return job.live() && replan.plan_held_back && no_plan_followed(); }
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
